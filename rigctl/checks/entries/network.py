"""Network cards."""

from __future__ import annotations

from rigctl.checks.info import BASELINE, CheckInfo

ENTRIES = (
    CheckInfo(
        "network.link",
        "the network card's link runs as fast as it should, in both directions at once",
        requires=("a network card that tells its speed",),
        limit_from=("limits.min_network_mbit_per_s", "what both ends of the cable can do", BASELINE),
        fix="another cable, then the plug and the other end's port",
    ),
)
