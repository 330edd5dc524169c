"""What a collection of tasks contains, in the tables of the SUPER paper."""
