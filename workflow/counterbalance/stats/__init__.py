"""The statistics of the designs: pure functions on arrays, the question as the unit."""
