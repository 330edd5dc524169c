"""The stateful kernel of a trial and its sandboxes. Independent of agents and models."""
