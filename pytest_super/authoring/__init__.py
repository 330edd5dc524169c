"""What authors of tasks work with: generate, import, verify, count and rescore."""
