"""Being here puts this folder on the path, so that all tests can import `loopback`."""
