"""Small programs for what a container cannot show; `shim.py` is all of them, by the name it is called with."""
