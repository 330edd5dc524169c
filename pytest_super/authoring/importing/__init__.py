"""Task files from published data: SUPER, AutoExperiment."""
