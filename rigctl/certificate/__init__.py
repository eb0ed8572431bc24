"""Acceptance certificates: a statement of one run of one rig, for people as HTML and PDF, signed with an SSH key.

What is signed is the statement (JSON); it holds the digests of its HTML and PDF and of the run's own files. So each of
them can be verified offline, with OpenSSH alone if need be, and what differs can be named.
"""

from rigctl.certificate.create import create
from rigctl.certificate.verify import Finding, Verified, verify

__all__ = ["Finding", "Verified", "create", "verify"]
