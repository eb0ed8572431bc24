"""The index over all run directories: what was found when, of which rig. It can be deleted and made again at will."""

from rigctl.store.index.index import Index, Updated

__all__ = ["Index", "Updated"]
