"""The index over all run directories: what was found when, of which rig. It can be deleted and made again at will."""

from rigctl.store.index.bring import Updated
from rigctl.store.index.index import Cell, Index
from rigctl.store.index.opening import FILE, own_url

__all__ = ["FILE", "Cell", "Index", "Updated", "own_url"]
