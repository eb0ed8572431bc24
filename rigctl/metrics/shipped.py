"""The dashboard and the alert rules that come with rigctl."""

from __future__ import annotations

from importlib.resources import files


def dashboard() -> str:
    """Return the dashboard for Grafana, as JSON."""
    return _read("dashboard.json")


def rules() -> str:
    """Return the alert rules for Prometheus, as YAML."""
    return _read("rules.yml")


def _read(name: str) -> str:
    return (files("rigctl.metrics") / "data" / name).read_text(encoding="utf-8")
