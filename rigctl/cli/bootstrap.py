"""`rigctl bootstrap`: from a password login to a trusted key login, and what the box is."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import AskBecomeOpt, InventoryOpt, JsonOpt, ask_secret, emit_json
from rigctl.cli.trusting import agrees, show_key
from rigctl.errors import HostKeyChanged, UsageError

if TYPE_CHECKING:
    from rigctl.bootstrap import Bootstrapped
    from rigctl.fleet.ssh import Untrusted
    from rigctl.model.rig import Rig

EPILOG = "Example: rigctl bootstrap rig1 --user ubuntu --ask-pass"

RigArg = Annotated[str, typer.Argument(metavar="RIG", help="A rig of the inventory.")]
UserOpt = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="Who logs in.", show_default="ansible_user of the inventory"),
]
AskPassOpt = Annotated[
    bool, typer.Option("--ask-pass", help="Ask for the login's password; it is used once, where no key is accepted.")
]
KeyOpt = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="The key to install.", show_default="the inventory's, or OpenSSH's usual"
    ),
]
FingerprintOpt = Annotated[
    str | None,
    typer.Option(
        "--fingerprint", metavar="SHA256:…", help="The host key that the rig must show; then nothing is asked."
    ),
]
YesOpt = Annotated[bool, typer.Option("--yes", "-y", help="Record the host key that is shown without asking.")]
WaitOpt = Annotated[
    float, typer.Option("--cloud-init-timeout", metavar="SECONDS", min=0, help="How long to wait for the first boot.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bootstrap", epilog=EPILOG)(bootstrap_command)


def bootstrap_command(
    rig: RigArg,
    user: UserOpt = None,
    ask_pass: AskPassOpt = False,
    ask_become_pass: AskBecomeOpt = False,
    key: KeyOpt = None,
    fingerprint: FingerprintOpt = None,
    yes: YesOpt = False,
    cloud_init_timeout: WaitOpt = 600,
    inventory: InventoryOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Trust a fresh box, log in with a password once, install your key, check sudo, and say what the box is.

    Each step that is done already is passed by, so it can be run again. Exit code: 0 ready, 3 not, with the reason.
    """
    from rigctl.bootstrap import Bootstrap, Options, find_public_key  # noqa: PLC0415 - keeps `rigctl --help` fast

    one = _one_rig(rig, inventory)
    who = user or one.login.user or "you"
    options = Options(
        user=user,
        key=find_public_key(one.login, key),
        password=ask_secret(f"password of {who} on {one.name}") if ask_pass else None,
        become_password=ask_secret(f"password for sudo on {one.name}") if ask_become_pass else None,
        cloud_init_timeout_s=cloud_init_timeout,
    )

    def trusts(unknown: Untrusted) -> bool:
        return _trusts(unknown, fingerprint, yes=yes)

    done = Bootstrap(one, options, trusts, _say).run()
    if as_json:
        emit_json({**dataclasses.asdict(done), "box": done.box.model_dump(mode="json")})
    else:
        _print(done, one)


def _one_rig(pattern: str, inventory: Path | None) -> Rig:
    from rigctl.inventory import load_fleet  # noqa: PLC0415

    fleet = load_fleet(inventory, pattern)
    if len(fleet) != 1:
        names = ", ".join(rig.name for rig in fleet)
        raise UsageError(f"{pattern!r} is {len(fleet)} rigs: {names}", "bootstrap takes one rig at a time")
    return fleet[0]


def _trusts(unknown: Untrusted, fingerprint: str | None, *, yes: bool) -> bool:
    """Show the key; compare it with the expected one, or ask. No terminal and no answer is a no.

    Raises:
        HostKeyChanged: the rig shows another key than the expected one.
    """
    key, hop = unknown.key, unknown.hop
    if fingerprint is not None and hop.is_rig:
        show_key(unknown)
        if key.fingerprint != fingerprint:
            raise HostKeyChanged(
                f"{hop.label}: it shows {key.fingerprint}, not the expected {fingerprint}",
                "is another machine at this address? The rig's own console shows its fingerprint",
            )
        return True
    if not yes and not sys.stdin.isatty():
        show_key(unknown)  # standard input holds passwords, no answer
        return False
    return agrees(unknown, yes=yes)


def _say(word: str, found: str) -> None:
    sys.stderr.write(f"  ok   {word:<12} {found}\n")


def _print(done: Bootstrapped, rig: Rig) -> None:
    sys.stdout.write(f"{done.rig}\n")
    for word, found in done.box.lines():
        sys.stdout.write(f"  {word:<12} {found}\n")
    if done.sudo_asks and rig.login.become_password is None:
        sys.stderr.write(
            "sudo wants a password here: give --ask-become-pass to doctor, provision, check and accept, or keep it in\n"
            "the inventory as ansible_become_password, vaulted (ansible-vault encrypt_string)\n"
        )
    sys.stderr.write(f"next: rigctl doctor {done.rig}, then rigctl provision {done.rig} --check\n")
