"""The agent agentless of AutoExperiment: one generation for each missing function, then the commands once."""
