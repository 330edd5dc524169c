"""Tasks as folders in the form of Harbor."""
