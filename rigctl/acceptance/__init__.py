"""The testinfra suite and its pytest plugin."""
