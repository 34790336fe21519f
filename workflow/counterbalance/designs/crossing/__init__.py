"""Two sources that disagree, in a four-way crossing of block order and role."""
