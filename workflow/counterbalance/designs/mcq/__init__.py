"""Multiple-choice questions under permuted answer orders."""
