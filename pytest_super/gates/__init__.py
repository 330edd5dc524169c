"""What decides a run: its gates, its baseline, its errors. Everything else reads the verdict."""
