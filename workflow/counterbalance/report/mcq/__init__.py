"""How the report shows multiple-choice experiments."""
