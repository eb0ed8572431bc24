"""What every check says of itself, one module per subject: the first word of the check's id."""
