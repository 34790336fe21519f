"""The scout: two orders of a few items, asked before the rest of a cell, and what follows from them."""
