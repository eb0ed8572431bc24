"""Simulated rigs: real SSH, systemd and apt; simulated hardware."""
