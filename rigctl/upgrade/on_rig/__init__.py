"""What an upgrade does on a rig: sent there over standard input, run as root by the system's Python.

Standard library only, Python 3.10 or newer; `rigctl.upgrade.asking` sends the files together.
"""
