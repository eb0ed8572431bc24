"""One provisioned simulated rig for this folder's tests, started from the image that tests/rigs keeps."""

from __future__ import annotations

from tests.rigs.conftest import provisioned

__all__ = ["provisioned"]
