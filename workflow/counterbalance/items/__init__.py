"""From a data file to checked items."""
