"""Processes as forks of one that has imported what they need, on Linux.

`server` is that process. It runs nothing itself, so its forks have nothing of each other. `start` starts it,
`fork` asks it for a fork, and `client` is a program that does, for whoever has to start a program.
"""
