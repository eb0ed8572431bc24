"""What a rig's past says: series of figures, slow trends, changes since the last pass."""

from rigctl.trends.changes import Change, changes
from rigctl.trends.know import Knowledge, know, known_of
from rigctl.trends.series import Series, all_series
from rigctl.trends.slow import TrendFinding, slow_trends

__all__ = ["Change", "Knowledge", "Series", "TrendFinding", "all_series", "changes", "know", "known_of", "slow_trends"]
