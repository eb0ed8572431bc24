"""Words of the house as types: no I/O."""
