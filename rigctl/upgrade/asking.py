"""Ask a rig for what `on_rig` does there: its files go along over standard input, the answer is one JSON object."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rigctl import assets
from rigctl.errors import CommandFailed
from rigctl.upgrade.port import StepFailed

if TYPE_CHECKING:
    from rigctl.fleet.commands import Commands

_PRELUDE = """\
import importlib.abc, importlib.util, sys
class _Sent(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in _SOURCES else None
    def is_package(self, name):
        return name == "on_rig"
    def get_source(self, name):
        return _SOURCES[name]
sys.meta_path.insert(0, _Sent())
from on_rig.main import main
main(sys.argv[1])
"""


def script() -> bytes:
    """Return the program as Python reads it from standard input, with the roles' scripts of drivers and kernels."""
    folder, roles = files("rigctl.upgrade") / "on_rig", assets.roles_dir()
    scripts = [path for role in ("nvidia_driver", "kernel") for path in (roles / role / "files").glob("*.py")]
    choosing = {path.stem: path.read_text(encoding="utf-8") for path in scripts}
    restart = {"reboot_look": (roles / "reboot" / "files" / "look.py").read_text(encoding="utf-8")}
    own = {
        "on_rig" if path.name == "__init__.py" else f"on_rig.{path.name.removesuffix('.py')}": path.read_text("utf-8")
        for path in folder.iterdir()
        if path.name.endswith(".py")
    }
    return f"_SOURCES = {choosing | restart | own!r}\n{_PRELUDE}".encode()


def ask(connection: Commands, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """Have the rig do one thing and return its answer.

    Raises:
        StepFailed: it says why it cannot.
        CommandFailed: it did not answer in words.
        RigError: as the connection's `run`.
    """
    words = ["python3", "-I", "-", json.dumps(request)]
    reply = connection.run(words, timeout_s=timeout_s, stdin=script(), root=True)
    try:
        answer: dict[str, Any] = json.loads(reply.stdout)
    except ValueError:
        said = reply.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
        raise CommandFailed(
            f"{connection.name}: `{request['do']}` did not end there: {said[0]}",
            f"run: rigctl doctor {connection.name}",
        ) from None
    if "error" in answer:
        raise StepFailed(f"{connection.name}: {answer['error']}", str(answer["hint"]))
    return answer
