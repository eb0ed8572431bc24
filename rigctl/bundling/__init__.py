"""Fill a folder with everything that rigs install, so that they can be provisioned without a network."""

from rigctl.bundling.make import BundleOptions, BundleOutcome, make_bundle
from rigctl.bundling.manifest import Manifest, damages, read_manifest

__all__ = ["BundleOptions", "BundleOutcome", "Manifest", "damages", "make_bundle", "read_manifest"]
