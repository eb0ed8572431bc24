"""Sending: messages through Apprise, the heartbeat by HTTP; addresses with secrets come from elsewhere."""

from __future__ import annotations

import logging
import os
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from rigctl.errors import RigctlError, UsageError

if TYPE_CHECKING:
    from rigctl.model.nightly import NightlySpec, Secret
    from rigctl.nightly.told import Message

log = logging.getLogger(__name__)
HEARTBEAT_S, HEARTBEAT_TIMES = 10, 3
"""One ping is given so long, seconds, and tried so often."""
_SCHEMES = ("http://", "https://")


class NotTold(RigctlError):
    """A message or a ping did not go out."""


def reveal(secret: Secret) -> str:
    """Return the address that is kept elsewhere.

    Raises:
        UsageError: it is not there.
    """
    if secret.env is not None:
        found = os.environ.get(secret.env)
        if not found:
            raise UsageError(
                f"the environment has no {secret.env}",
                f"export {secret.env}=…, or put it into the night's own environment file",
            )
        return found
    import keyring  # noqa: PLC0415 - slow to load, and seldom used
    from keyring.errors import KeyringError  # noqa: PLC0415

    service, _, user = (secret.keyring or "").partition("/")
    try:
        found = keyring.get_password(service, user)
    except KeyringError as error:
        raise UsageError(f"the keyring cannot be read: {error}", "name an environment variable instead") from error
    if not found:
        raise UsageError(f"the keyring has no {secret.keyring}", f"keyring set {service} {user}")
    return found


def require_secrets(spec: NightlySpec) -> None:
    """Find every address before the night begins. Raises UsageError where one is missing."""
    for secret in (*spec.notify, *((spec.heartbeat,) if spec.heartbeat is not None else ())):
        reveal(secret)


def send(message: Message, where: Secret) -> None:
    """Send a message to a service.

    Raises:
        UsageError: its address is missing, or names no service that Apprise knows.
        NotTold: it did not take the message; the address is not in the words, because it holds secrets.
    """
    from apprise import Apprise, NotifyType  # noqa: PLC0415 - slow to load

    kinds = {"clear": NotifyType.SUCCESS, "digest": NotifyType.INFO, "left_out": NotifyType.INFO}
    service = Apprise()
    if not service.add(reveal(where)):
        raise UsageError(f"{where.name} is no address that Apprise knows", "such as mailto://user:password@host")
    kind = kinds.get(message.kind, NotifyType.FAILURE)
    if not service.notify(title=message.title, body=message.body, notify_type=kind):
        raise NotTold(f"the service in {where.name} did not take the message", "is it reachable from here?")


def beat(secret: Secret, how: str = "", body: str = "") -> None:
    """Ping the heartbeat's address.

    Args:
        secret: Where the address is kept.
        how: `start` or `fail`, as healthchecks-like services know them; empty: all was done.
        body: A few words that such services keep.

    Raises:
        UsageError: the address is missing or none.
        NotTold: nobody answered.
    """
    url = reveal(secret).rstrip("/") + (f"/{how}" if how else "")
    if not url.startswith(_SCHEMES):
        raise UsageError(f"{secret.name} is no http address", "such as https://hc.example.org/ping/…")
    for attempt in range(1, HEARTBEAT_TIMES + 1):
        try:
            with urllib.request.urlopen(url, data=body.encode() or None, timeout=HEARTBEAT_S):  # noqa: S310 - http, as asked above
                return
        except (urllib.error.URLError, TimeoutError, OSError) as error:
            log.warning("heartbeat, attempt %d: %s", attempt, error)
            last = str(getattr(error, "reason", error))
    raise NotTold(f"the heartbeat in {secret.name} was not heard: {last}", "is it reachable from here?")
