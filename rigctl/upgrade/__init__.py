"""Rolling upgrades of rigs in use: each rig is planned, drained, changed, verified, and given back or taken back."""
