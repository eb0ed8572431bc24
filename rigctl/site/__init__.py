"""The static site: the fleet, each rig, each run and each check, as pages that open from a file or any web server."""

from rigctl.site.build import Built, build

__all__ = ["Built", "build"]
