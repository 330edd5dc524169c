"""On Linux, processes as forks of one that has imported what they need.

`server` is that process. It runs nothing itself, so no fork has anything of another. `start` starts it, and
`fork` asks it for a fork. `client` is a program that asks: xdist can only start programs.
"""
