"""The part of rigctl that runs on a rig: the standard library and pynvml only, Python 3.10-clean.

It imports nothing of rigctl; its JSON is read back as the types of rigctl/model/reading.py. Only what stands in
scripts/ may import torch, and runs by itself in the rig's own environment.
"""
