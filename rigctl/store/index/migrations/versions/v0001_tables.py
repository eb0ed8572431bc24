"""Runs, rigs in runs, figures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "run",
        sa.Column("root", sa.String, primary_key=True),
        sa.Column("folder", sa.String, primary_key=True),
        sa.Column("stamp", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("unreadable", sa.Text),
    )
    op.create_table(
        "past",
        sa.Column("root", sa.String, primary_key=True),
        sa.Column("folder", sa.String, primary_key=True),
        sa.Column("rig", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("ended_at", sa.String, nullable=False),
        sa.Column("verdict", sa.String),
        sa.Column("cause", sa.Text),
        sa.Column("judged", sa.Boolean, nullable=False),
        sa.Column("accepted", sa.Boolean, nullable=False),
        sa.Column("baseline", sa.Boolean, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["root", "folder"], ["run.root", "run.folder"], ondelete="CASCADE"),
    )
    op.create_table(
        "point",
        sa.Column("root", sa.String, primary_key=True),
        sa.Column("folder", sa.String, primary_key=True),
        sa.Column("rig", sa.String, primary_key=True),
        sa.Column("check_id", sa.String, primary_key=True),
        sa.Column("subject", sa.String, primary_key=True),
        sa.Column("ended_at", sa.String, nullable=False),
        sa.Column("profile", sa.String, nullable=False),
        sa.Column("slot", sa.String),
        sa.Column("uuid", sa.String),
        sa.Column("found", sa.Float, nullable=False),
        sa.Column("unit", sa.String),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("limit_value", sa.Float),
        sa.ForeignKeyConstraint(
            ["root", "folder", "rig"], ["past.root", "past.folder", "past.rig"], ondelete="CASCADE"
        ),
    )
    op.create_index("past_by_rig", "past", ["rig", "kind", "ended_at"])
    op.create_index("past_by_time", "past", ["kind", "ended_at"])
    op.create_index("point_by_series", "point", ["rig", "check_id", "ended_at"])
