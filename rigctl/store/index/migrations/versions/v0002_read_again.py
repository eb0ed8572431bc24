"""What is kept of a rig in a run says which profile was asked for: all runs are read again."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Let no stamp fit any more; until each controller has read its own runs again the old rows serve."""
    op.execute("UPDATE run SET stamp = ''")
