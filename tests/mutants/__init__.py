"""`make mutants`: turns every comparison of the checks round, one at a time, and runs the tests that pass through it.

The mutants are cosmic-ray's (the optional extra `mutants`). They are run by `loop.py` in forks of one process that has
loaded and collected everything, because cosmic-ray's own loop starts the suite anew for each
and writes over the sources.
"""
