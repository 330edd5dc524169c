"""The stateful kernel of a trial and the sandboxes it lives in. Knows nothing of agents or models."""
