"""Reports of a run, computed from its results alone."""
