"""What is told of a run. Reads results, runs nothing."""
