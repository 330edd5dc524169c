"""Stored trajectories scored again, as the paper says and as the published code does."""
