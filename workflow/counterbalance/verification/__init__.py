"""Checking published results: what is listed, what it hashes to, how it chains, and every number once more."""
