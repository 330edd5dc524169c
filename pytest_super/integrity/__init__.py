"""Whether a trial was honest, as far as that is seen from where the agent cannot reach."""
