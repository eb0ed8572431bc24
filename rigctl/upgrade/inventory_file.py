"""One rig's own wishes in the inventory: `host_vars/RIG/zz_rigctl_upgrade.yml`, the only thing an upgrade writes there.

So accept, provision and every night ask of each rig of a half-rolled fleet what that rig is to be. What group_vars say
already is left out; an empty file is removed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from rigctl.errors import UsageError
from rigctl.store.files import replace_durably

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.upgrade import Wishes

NAME = "zz_rigctl_upgrade.yml"
_SINGLE = (".yml", ".yaml", ".json", "")
_BRANCH = re.compile(r"[0-9]{3}")


def wished_variables(wishes: Wishes) -> dict[str, str]:
    """The role variables that say what is wished."""
    variables: dict[str, str] = {}
    if wishes.driver is not None:
        exact = not _BRANCH.fullmatch(wishes.driver)
        variables["nvidia_driver_branch"] = wishes.driver.partition(".")[0]
        variables["nvidia_driver_version"] = wishes.driver if exact else ""
    if wishes.cuda is not None:
        variables["cuda_version"] = wishes.cuda
    if wishes.torch is not None:
        version, _, build = wishes.torch.partition("+")
        variables["pytorch_version"] = version
        if build:
            variables["pytorch_build"] = build
    if wishes.kernel is not None:
        variables["kernel_version"] = wishes.kernel
    return variables


def as_the_class_s_own(wishes: Wishes, rig_class: str) -> str:
    """Say what a person does once every rig of the class has it."""
    values = ", ".join(f'{name}: "{value}"' for name, value in wished_variables(wishes).items() if value)
    return f"set {values} in group_vars/class_{rig_class}, then remove host_vars/*/{NAME}"


@dataclass(frozen=True)
class InventoryFile:
    """The file of one rig."""

    folder: Path
    """The folder that holds `host_vars`."""
    rig: str

    @property
    def path(self) -> Path:
        """Where it is, or would be."""
        return self.folder / "host_vars" / self.rig / NAME

    def require_room(self) -> None:
        """Raise UsageError where the file could not be written, or Ansible would then read another one no more."""
        host_vars = self.folder / "host_vars"
        if not (host_vars / self.rig).is_dir():
            single = next((p for end in _SINGLE if (p := host_vars / f"{self.rig}{end}").is_file()), None)
            if single is not None:
                raise UsageError(
                    f"{single}: an upgrade writes a file beside it, and Ansible reads a folder instead of this one",
                    f"move it: mkdir {host_vars / self.rig}.d && mv {single} {host_vars / self.rig}.d/main.yml && "
                    f"mv {host_vars / self.rig}.d {host_vars / self.rig}",
                )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            trial = self.path.with_name(f".{NAME}.trial")
            trial.touch()
            trial.unlink()
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be written: {error.strerror}",
                "an upgrade writes there what the rig is to have; give it a folder that it may write",
            ) from error

    def read(self) -> str | None:
        """What it holds; None where there is none."""
        return self.path.read_text(encoding="utf-8") if self.path.is_file() else None

    def write(self, wished: dict[str, str], without: dict[str, Any], run_id: str) -> None:
        """Have it say what is wished, beside what it said before; `without`: what holds where it says nothing."""
        before: dict[str, Any] = yaml.safe_load(self.read() or "") or {}
        values = {name: value for name, value in {**before, **wished}.items() if without.get(name) != value}
        if not values:
            self.put_back(None)
            return
        note = (
            f"# Written by `rigctl upgrade`, run {run_id}.\n"
            "# Once the whole class has it: say it in group_vars, and remove this file.\n"
        )
        self._replace(note + yaml.safe_dump(values, default_style='"', sort_keys=True))

    def put_back(self, text: str | None) -> None:
        """Have it hold what it held; None: there is no such file."""
        if text is not None:
            self._replace(text)
            return
        self.path.unlink(missing_ok=True)
        if self.path.parent.is_dir() and not any(self.path.parent.iterdir()):
            self.path.parent.rmdir()

    def _replace(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_durably(self.path, text.encode())
