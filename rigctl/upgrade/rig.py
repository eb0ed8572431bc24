"""One rig as an upgrade needs it, over SSH: its agent knows the cards, `on_rig` the packages, roles do the change."""

from __future__ import annotations

import contextlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.accept import AcceptOptions, accept, start_run
from rigctl.errors import ChangeIncomplete, CommandFailed, ConnectionLost, UsageError
from rigctl.fleet.delivery import RemoteAgent
from rigctl.fleet.ssh import RigConnection
from rigctl.inventory import load_fleet
from rigctl.measure.claim import Claim, somebody
from rigctl.measure.progress import Progress
from rigctl.model.reading import Facts
from rigctl.model.upgrade import Capture, RigPlan
from rigctl.power.system import SshSystem, wait_until_back
from rigctl.provision import ProvisionOptions, attempt
from rigctl.store.baseline import ACCEPTED
from rigctl.upgrade.asking import ask
from rigctl.upgrade.inventory_file import wished_variables
from rigctl.upgrade.planning import PlanSeen, cards_of, driver_request, kernel_request, links_of, plan_of
from rigctl.upgrade.port import Smoke, StepFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from rigctl.model.rig import Rig
    from rigctl.model.upgrade import Wishes
    from rigctl.provision import ProvisionProgress
    from rigctl.upgrade.inventory_file import InventoryFile

SHORT_S, FACTS_S = 60, 60
LONG_S = 3600
"""Fetching packages, or a transaction of apt with modules that are compiled, seconds."""
BOOT_S = 900
PROFILE = "smoke"
TAGS = {
    "driver": ("nvidia_driver", "cuda", "pytorch", "container_toolkit", "gpu_burn"),
    "cuda": ("cuda", "gpu_burn"),
    "torch": ("pytorch",),
    "kernel": ("kernel",),
}
"""The roles that each wish bears on."""


@dataclass
class SshRig:
    """One rig of an upgrade."""

    rig: Rig
    inventory: Path
    own: InventoryFile
    runs: Path
    run: Path
    """The upgrade's own directory."""
    variables: Mapping[str, Any]
    """Role variables as they hold for the rig when the upgrade begins, its own file included."""
    without_own: Mapping[str, Any]
    """The same where its own file says nothing."""
    evict_users: bool = False
    _doing: Callable[[], str] = field(default_factory=lambda: str, init=False)
    """Says what the present call is at; between calls `str`, which says nothing."""

    def plan(self, wishes: Wishes) -> RigPlan:
        """Ask packages sources, tables and agent what the wishes would come to."""
        with self._connected() as connection:
            agent = RemoteAgent(connection)
            agent.deliver()
            facts = self._facts(agent)
            request = {
                "do": "plan",
                "driver": driver_request(wishes, self.variables),
                "kernel": kernel_request(wishes, self.variables),
            }
            seen = ask(connection, request, LONG_S)
        return plan_of(self.rig, wishes, PlanSeen(facts, seen, dict(self.variables)))

    def lock(self, run_id: str, *, ignore: bool = False) -> str:
        """Take the rig; its file survives restarts."""
        request = {"do": "lock", "run_id": run_id, "by": somebody(), "ignore": ignore}
        with self._connected() as connection:
            return str(ask(connection, request, SHORT_S)["holder"])

    def unlock(self, run_id: str) -> None:
        """Let go, and forget what was kept for the way back."""
        with self._connected() as connection:
            ask(connection, {"do": "forget", "run_id": run_id}, LONG_S)
            ask(connection, {"do": "unlock", "run_id": run_id}, SHORT_S)

    def capture(self, run_id: str, *, keep_old: bool) -> Capture:
        """Note what is there; with `keep_old` have the rig keep every package that would change, and what was built."""
        planned = RigPlan.model_validate_json((self.run / self.rig.name / "plan.json").read_bytes())
        software = self.rig.spec.software
        with self._connected() as connection:
            if keep_old:
                names = [one.name for one in planned.packages if one.before]
                known = planned.folders
                folders = [software.gpu_burn_dir, software.torch_venv] if known is None else list(known)
                ask(connection, {"do": "keep", "run_id": run_id, "names": names, "folders": folders}, LONG_S)
            return self._captured(connection)

    def users(self) -> tuple[str, ...]:
        """Runs of rigctl, programs on cards and processor, logins."""
        with self._connected() as connection:
            agent = RemoteAgent(connection)
            agent.deliver()
            told = agent.call("users", timeout_s=SHORT_S)
        return tuple(str(one) for one in (*told["runs"], *told["users"]))

    def smoke(self, label: str) -> Smoke:
        """Accept it; the run lies beside all others, and becomes the baseline where it passes."""
        (rig,) = load_fleet(self.inventory, self.rig.name)
        asked = {"upgrade": self.run.name, "label": label, "rigs": rig.name, "profile": PROFILE}
        claim = Claim(evict_users=self.evict_users, upgrade=self.run.name)
        options = AcceptOptions((rig,), PROFILE, self.runs, asked, claim=claim)
        run_dir = start_run(options)
        progress = Progress([rig.name])
        with self._at(lambda: _measuring(progress)):
            record = accept(options, run_dir, progress).record
        (judged,) = record.rigs
        cause = next(iter(judged.causes), None)
        figures = {
            one.key: float(one.found)
            for one in judged.verdicts
            if isinstance(one.found, (int, float)) and not isinstance(one.found, bool)
        }
        units = {one.key: one.unit for one in judged.verdicts if one.key in figures and one.unit}
        why = "" if judged.verdict in ACCEPTED else f"{cause.key}: {cause.reason}" if cause else judged.verdict.value
        return Smoke(
            record.run_id, accepted=not why, why_not=why, figures=figures, units=units, simulated=bool(judged.simulated)
        )

    def release(self, wishes: Wishes) -> tuple[str, ...]:
        """Ask once more for the kernel that boots next, which may be new by now; then stop what holds the cards."""
        if wishes.driver is None and wishes.kernel is None:
            return ()
        request = {"do": "release", "run_id": self.run.name, "evict": self.evict_users}
        with self._connected() as connection:
            if wishes.driver is not None and self.variables["nvidia_driver_modules"] == "dkms":
                ask(connection, {"do": "can_build"}, SHORT_S)
            return tuple(ask(connection, request, LONG_S)["stopped"])

    def change(self, wishes: Wishes) -> None:
        """Say the wishes in the inventory, then provision this rig as anybody would."""
        self.own.write(wished_variables(wishes), dict(self.without_own), self.run.name)
        tags = tuple(dict.fromkeys(tag for name, value in wishes if value is not None for tag in TAGS[name]))
        options = ProvisionOptions(
            inventory=self.inventory,
            runs=self.runs,
            rigs=self.rig.name,
            tags=tags,
            become_password=self.rig.login.become_password,
        )
        try:
            with contextlib.ExitStack() as told:
                outcome = attempt(options, lambda seen: told.enter_context(self._at(lambda: _provisioning(seen))))
        except (UsageError, ChangeIncomplete) as error:
            raise StepFailed(error.message, error.hint) from error
        for one in outcome.incomplete:
            where = f" at {one.role} · {one.task}" if one.task else ""
            raise StepFailed(f"provisioning {one.state}{where}: {one.message} (run {outcome.run_id})", one.hint)
        self.start_again()

    def start_again(self) -> None:
        """Start what was stopped, where it has not come back with the restart."""
        with self._connected() as connection:
            ask(connection, {"do": "start_again", "run_id": self.run.name}, LONG_S)

    def seen(self) -> Capture:
        """What is there now: packages, files, cards, links."""
        with self._connected() as connection:
            return self._captured(connection)

    def doing(self) -> str:
        """The playbook's role and task, or the acceptance's step."""
        return self._doing()

    @contextmanager
    def _at(self, words: Callable[[], str]) -> Iterator[None]:
        self._doing = words
        try:
            yield
        finally:
            self._doing = str

    def restore(self, capture: Capture) -> None:
        """Put everything back; restart where another driver or kernel runs than before, or the rig was restarted since.

        At that start services met a driver that is no more; what sets the cards up does not try again by itself.
        """
        before = capture.model_dump(mode="json", include={"packages", "files", "kernel", "grub_saved"})
        with self._connected() as connection:
            ask(connection, {"do": "restore", "run_id": self.run.name, "before": before}, LONG_S)
            now = ask(connection, {"do": "capture"}, SHORT_S)
        self.own.put_back(capture.inventory)
        as_before = (capture.loaded, capture.kernel, capture.boot_id)
        if (now["loaded"], now["kernel"], now["boot_id"]) != as_before:
            self._restart(now["boot_id"])
        cards = [one.model_dump(include={"uuid", "power_limit_w", "persistence"}) for one in capture.cards]
        with self._connected() as connection:
            ask(connection, {"do": "set_cards", "cards": cards}, LONG_S)
        self.start_again()

    def _restart(self, boot_id: str) -> None:
        # The connection may break before the answer has come: that is what was asked for.
        with suppress(ConnectionLost), self._connected() as connection:
            connection.run("systemctl --no-block reboot", timeout_s=SHORT_S, root=True)
        system = SshSystem(self.rig)
        back = wait_until_back(system, BOOT_S, other_than=boot_id)
        if back is None:
            raise StepFailed(
                f"{self.rig.name} did not come back within {BOOT_S} s of its restart",
                f"look at its console, or: rigctl power {self.rig.name} cycle",
            )

    def _captured(self, connection: RigConnection) -> Capture:
        agent = RemoteAgent(connection)
        agent.deliver()
        facts = self._facts(agent)
        seen = ask(connection, {"do": "capture"}, SHORT_S)
        told = seen.pop("cards")
        cards = tuple(one.model_copy(update=told.get(one.uuid, {})) for one in cards_of(facts))
        return Capture(**seen, cards=cards, links=links_of(facts), inventory=self.own.read())

    def _facts(self, agent: RemoteAgent) -> Facts:
        software = self.rig.spec.software
        words = ("facts", "--gpu-burn-dir", software.gpu_burn_dir, "--torch-venv", software.torch_venv)
        try:
            return Facts.model_validate(agent.call(*words, timeout_s=FACTS_S))
        except ValidationError as error:
            raise CommandFailed(f"the agent's facts have an unexpected form: {error.errors()[0]}") from error

    @contextmanager
    def _connected(self) -> Iterator[RigConnection]:
        """A connection of its own for each step: none outlives a restart."""
        connection = RigConnection(self.rig.login, self.rig.name)
        try:
            connection.connect()
            yield connection
        finally:
            connection.close()


def _provisioning(progress: ProvisionProgress) -> str:
    (now,) = progress.snapshot()
    return " · ".join(word for word in (now.stage, now.task) if word)


def _measuring(progress: Progress) -> str:
    (now,) = progress.snapshot()
    return " · ".join(word for word in (now.step, now.note) if word)
