"""What numbers of trials say about agents: pure functions, with their sources."""
