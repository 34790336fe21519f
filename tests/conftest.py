"""Being here puts this folder on the path, so that all tests can import `loopback`."""

from hypothesis import settings

# The same examples every time, however slow the machine: a refusal is to come from a change, never from luck. Other
# examples are drawn by `--hypothesis-profile default`.
settings.load_profile("ci")
