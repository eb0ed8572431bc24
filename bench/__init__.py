"""Every figure that is claimed, measured: `make bench`, or `make bench NAME=…` for one.

One file a bench: `NAME` (what NAME= asks for) and `measure(stage) -> list[Figure]`.
"""
