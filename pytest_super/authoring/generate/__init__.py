"""Tasks of the set auto, made from repositories by a model."""
