"""The processes of many workers: forks of one that has imported what they need.

Sixteen interpreters that import the same modules take seven seconds of processor time and 800 MiB. xdist
starts a program for each worker, as always. The program is `client`, which asks `server` for a fork, gives it
its own standard streams, and ends as the fork does. A fork has nothing of a trial: the server runs no test.
"""
