"""Snapshots: sandboxes that start with the files that a prefix has written (SUPER, section 3.2).

The first trial with a prefix saves the files of its sandbox after the beginning that leaves nothing but
files; later trials start from them and run the rest. A snapshot is named by everything that its files depend
on, and contains nothing that an agent did.
"""
