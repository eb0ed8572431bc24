"""One change of the tables a file, oldest first."""
