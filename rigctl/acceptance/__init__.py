"""The testinfra suite that asks each rig's host, and the pytest plugin that turns its tests into verdicts."""
