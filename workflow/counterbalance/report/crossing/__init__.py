"""How a crossing of conflicting sources is shown."""
