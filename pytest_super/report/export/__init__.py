"""A stored run in the forms that other tools read. To add one: add a file, and list it in `formats`."""
