"""Drives the playbooks and turns their events into progress."""
