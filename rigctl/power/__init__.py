"""Switching a rig's supply from outside."""
