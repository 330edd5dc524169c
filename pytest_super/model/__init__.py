"""Calls of language models: the light client in workers, the gateway process, and the providers behind it."""
