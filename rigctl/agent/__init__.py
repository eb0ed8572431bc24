"""Runs on the rig: standard library and pynvml only."""
