"""One provisioning: `playbooks/site.yml` over a fleet, its log and its outcome in a run directory."""

from __future__ import annotations

import re
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ansible_runner

from rigctl import assets, compat
from rigctl.errors import ChangeIncomplete, UsageError
from rigctl.inventory import load_fleet
from rigctl.model.run import RunRig
from rigctl.provision.become import become_settings
from rigctl.provision.left_over import MARK, end_left_over, watched
from rigctl.provision.mitogen import choose_carrier
from rigctl.provision.outcome import ProvisionOutcome
from rigctl.provision.progress import ProvisionProgress
from rigctl.provision.settings import ansible_environment
from rigctl.provision.tasks import count_tasks, known_tags
from rigctl.store import RunDir

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SecretStr

    from rigctl.model.rig import Rig

DEFAULT_INVENTORY = Path("inventory")
LOG = "ansible.log"
_CANCEL_LOOK_S = 1
"""So often ansible-runner asks whether it shall end, where Ansible says nothing."""
_CHOOSERS = {"nvidia_driver", "cuda", "pytorch"}
"""The roles whose wishes must go together."""
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class ProvisionOptions:
    """What a provisioning was asked to do."""

    inventory: Path | None
    runs: Path
    rigs: str = "all"
    """Ansible host pattern."""
    check: bool = False
    """Say what would change, change nothing."""
    diff: bool = False
    """Log what changes in files, line by line."""
    tags: tuple[str, ...] = ()
    """Only these roles."""
    become_password: SecretStr | None = None
    """Sudo's password for rigs whose inventory has none; None: none is given."""

    @property
    def inventory_path(self) -> Path:
        """The inventory, absolute: Ansible is started elsewhere."""
        return (self.inventory or DEFAULT_INVENTORY).absolute()


def provision(
    options: ProvisionOptions, watch: Callable[[ProvisionProgress], None] = lambda _progress: None
) -> ProvisionOutcome:
    """Provision a fleet to its end; `watch` as in `attempt`.

    Raises:
        UsageError: no such inventory, rig or tag.
        ChangeIncomplete: some rig is not as asked; the message names the first, with its failed task.
    """
    outcome = attempt(options, watch)
    if outcome.incomplete:
        first, *others = outcome.incomplete
        more = f" (and {len(others)} more)" if others else ""
        where = f" at {first.role} · {first.task}" if first.task else ""
        raise ChangeIncomplete(f"{first.name} {first.state}{where}: {first.message}{more}", first.hint)
    return outcome


def attempt(
    options: ProvisionOptions, watch: Callable[[ProvisionProgress], None] = lambda _progress: None
) -> ProvisionOutcome:
    """Provision a fleet and return what became of it; `watch` is given the progress before Ansible starts.

    Raises:
        UsageError: no such inventory, rig or tag, or wishes that do not go together.
        ChangeIncomplete: Ansible itself did not run.
    """
    playbook = assets.playbooks_dir() / "site.yml"
    _refuse_unknown_tags(options.tags, known_tags(playbook))
    fleet = load_fleet(options.inventory, options.rigs)
    if not options.tags or set(options.tags) & _CHOOSERS:
        compat.refuse_wishes(fleet)
    carrier = choose_carrier(fleet)
    environment = ansible_environment() | carrier.environment
    total = count_tasks(playbook, assets.roles_dir(), options.tags)
    progress = ProvisionProgress([rig.name for rig in fleet], total)
    run = RunDir.create(options.runs, "provision", rigs=_run_rigs(fleet), asked=_asked(options))
    watch(progress)
    run.journal("provision_started", rigs=[rig.name for rig in fleet], check=options.check, carrier=carrier.name)
    if carrier.why:
        run.append_run_file(LOG, f"{carrier.why}\n".encode())
    try:
        with watched(run.run_id):
            ansible = _Ansible(options, playbook, environment | {MARK: run.run_id}, fleet)
            ended = ansible.run(_event_handler(run, progress))
    except KeyboardInterrupt:
        if carrier.name == "mitogen":
            end_left_over(run.run_id)
        run.journal("provision_interrupted")
        raise
    outcome = ProvisionOutcome(
        run_id=run.run_id,
        path=str(run.path),
        check=options.check,
        seconds=round(progress.elapsed_s, 1),
        rigs=progress.rig_outcomes(),
    )
    run.write_json_atomic("provision.json", outcome)
    run.journal("provision_finished", states={rig.name: rig.state for rig in outcome.rigs}, ansible=ended)
    if all(rig.state == "not_run" for rig in outcome.rigs):
        raise ChangeIncomplete(f"Ansible did not run: {_last_words(run)}", f"see {run.path / LOG}")
    return outcome


def _refuse_unknown_tags(asked: tuple[str, ...], known: set[str]) -> None:
    """Ansible runs nothing for an unknown tag, and says that all is well."""
    unknown = sorted(set(asked) - known)
    if unknown:
        choice = f"choose from: {', '.join(sorted(known))}"
        raise UsageError(f"--tags: no role has the tag {', '.join(unknown)}", choice)


def _run_rigs(fleet: tuple[Rig, ...]) -> list[RunRig]:
    return [RunRig(name=rig.name, spec=rig.spec) for rig in fleet]


def _asked(options: ProvisionOptions) -> dict[str, Any]:
    return {
        "rigs": options.rigs,
        "inventory": str(options.inventory_path),
        "check": options.check,
        "diff": options.diff,
        "tags": list(options.tags),
    }


def _event_handler(run: RunDir, progress: ProvisionProgress) -> Callable[[dict[str, Any]], bool]:
    def take(event: dict[str, Any]) -> bool:
        text = _ANSI.sub("", event.get("stdout", ""))
        if text:
            run.append_run_file(LOG, (text.rstrip("\r\n") + "\n").encode())
        progress.take(event)
        return False  # ansible-runner keeps no copy of the event

    return take


def _last_words(run: RunDir) -> str:
    log = run.path / LOG
    lines = log.read_text(encoding="utf-8").strip().splitlines() if log.is_file() else []
    return " | ".join(line.strip() for line in lines[-5:]) or "it said nothing"


class _Ansible:
    """One run of ansible-playbook through ansible-runner, which can be interrupted."""

    def __init__(
        self, options: ProvisionOptions, playbook: Path, environment: dict[str, str], fleet: tuple[Rig, ...]
    ) -> None:
        self._options = options
        self._playbook = playbook
        self._environment = environment
        self._limit = ",".join(rig.name for rig in fleet)
        self._cancelled = threading.Event()

    def run(self, handler: Callable[[dict[str, Any]], bool]) -> str:
        """Run to the end and return ansible-runner's word for it; after Ctrl-C Ansible is ended first."""
        # A future and not a thread to join: in CPython 3.11 and 3.12 a join that Ctrl-C breaks off takes the thread for
        # ended (gh-90882), and Ansible would go on by itself.
        with (
            tempfile.TemporaryDirectory(prefix="rigctl-provision-") as folder,
            become_settings(self._options.become_password) as become,
            ThreadPoolExecutor(1) as pool,
        ):
            ended = pool.submit(self._run, folder, become, handler)
            try:
                return ended.result()
            finally:
                self._cancelled.set()
                wait([ended])

    def _run(self, folder: str, become: dict[str, str], handler: Callable[[dict[str, Any]], bool]) -> str:
        runner = ansible_runner.run(
            private_data_dir=folder,
            playbook=str(self._playbook),
            inventory=str(self._options.inventory_path),
            limit=self._limit,
            envvars=self._environment | become,
            cmdline=self._command_line(),
            event_handler=handler,
            cancel_callback=self._cancelled.is_set,
            settings={"pexpect_timeout": _CANCEL_LOOK_S},
            quiet=True,
            suppress_env_files=True,
        )
        return str(runner.status)

    def _command_line(self) -> str:
        words = ["--check"] if self._options.check else []
        words += ["--diff"] if self._options.diff else []
        if self._options.tags:
            words += ["--tags", ",".join(self._options.tags)]
        return " ".join(words)
