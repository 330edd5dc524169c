"""Starts the processes of xdist, here and on other machines, and checks them."""
