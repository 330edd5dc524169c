"""Task files from the published repository of AutoExperiment."""
