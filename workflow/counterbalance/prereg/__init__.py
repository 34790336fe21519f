"""Preregistration: the written plan, its predictions, the frozen record, the gate and the verdicts."""
