"""The run directory: journal, raw outputs, record."""
