"""The package archives of simulated rigs: stub packages with the names, versions and dependencies of the real ones.

Runs while the rigs' image is built, with the rig's own Python (3.10 or newer) and its standard library alone.
"""
