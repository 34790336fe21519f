"""The report: one self-contained HTML file for a person, and its figures, from the tables alone."""
