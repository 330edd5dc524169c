"""Whether tasks can be solved, have one answer, and do not give it away."""
