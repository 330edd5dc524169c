"""The one door to language models: the light client, the gateway's process, and the providers behind it."""
