"""Where a trial lost its task: gold goes on from the states that its steps have left."""
