"""Task files in the forms of other frameworks."""
