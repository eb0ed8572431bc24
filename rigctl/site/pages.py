"""Writing one page: by its template, where what it says is new, in one step."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from rigctl.errors import UsageError
from rigctl.report.html import environment
from rigctl.report.text import rig_word
from rigctl.store.files import replace_durably, replace_if_other, writing

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment


MANIFEST = "site.json"
FOLDERS = ("", "rigs", "runs", "checks")


class Pages:
    """The files of a site."""

    def __init__(self, output: Path) -> None:
        """Take the folder."""
        self.output = output
        self.written = 0
        """Files that hold something new."""

    def manifest(self) -> dict[str, Any] | None:
        """What was kept when the site was written last; None where that is not known, and all is to be made again.

        Raises UsageError where the folder holds something else than a site.
        """
        path = self.output / MANIFEST
        if not path.exists():
            if self.output.exists() and any(self.output.iterdir()):
                raise UsageError(
                    f"{self.output} holds something else than a site", "name an empty folder with --output"
                )
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_bytes())
        except ValueError:
            return None  # cut by a crash
        return found

    def keep(self, manifest: dict[str, Any]) -> None:
        """Keep what the next writing asks for; last of all, so that what a crash cut short is made again."""
        replace_durably(self.output / MANIFEST, json.dumps(manifest).encode())

    def make_folders(self) -> None:
        """Make the site's folders. Raises UsageError where they cannot be."""
        with writing(self.output):
            for folder in FOLDERS:
                (self.output / folder).mkdir(parents=True, exist_ok=True)

    def page(self, name: str, template: str, **known: Any) -> None:
        """Write a page, by its name from the site's folder.

        Raises:
            UsageError: it cannot be written.
            RigctlError: the disk is full or broken.
        """
        self.put(name, _environment().get_template(template).render(root="../" * name.count("/"), **known))

    def put(self, name: str, text: str) -> None:
        """Write a file of the site, as `page`."""
        self.written += replace_if_other(self.output / name, text.encode("utf-8", "replace"))


@cache
def _environment() -> Environment:
    made = environment("rigctl.site")
    made.filters["said"] = rig_word
    return made
