"""Reports of a run: for the terminal, as one page, for machines."""
