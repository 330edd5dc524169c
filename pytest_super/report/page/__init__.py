"""The page of a run: made from its files alone, as one file or by a local server."""
