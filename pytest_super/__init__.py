"""Research-reproduction tasks as pytest items."""
