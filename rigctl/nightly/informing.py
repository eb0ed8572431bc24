"""Telling each service what it does not know yet: one that took nothing is tried again, no other hears it twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.errors import RigctlError
from rigctl.nightly.sending import send
from rigctl.nightly.told import Service, Told, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rigctl.model.nightly import Secret
    from rigctl.nightly.told import Message

    Decide = Callable[[Told], tuple[Told, tuple[Message, ...]]]
    """From what somebody knows to what they know afterwards, and the messages between."""

NOBODY = ""
"""Who is told where the inventory names no service: whoever reads the log."""


@dataclass
class Informed:
    """What came of it."""

    services: dict[str, Service] = field(default_factory=dict)
    """What each service knows now; those that the inventory names no more are forgotten."""
    messages: list[Message] = field(default_factory=list)
    """Every message that was made, once."""
    refused: list[RigctlError] = field(default_factory=list)
    """Why a service did not take its messages, without its address."""


def inform(where: Sequence[Secret], known: Mapping[str, Service], decide: Decide, *, anew: bool) -> Informed:
    """Send every service what it does not know.

    Args:
        where: The services.
        known: What each knows, by name.
        decide: What to say.
        anew: Make new messages of what a service did not take, as after a night; else send the same ones again first.
    """
    done = Informed()
    for name, secret in {one.name: one for one in where}.items() or [(NOBODY, None)]:
        service = known.get(name, Service())
        waiting = service.waiting if not anew else None
        if waiting is not None:
            service = _send(service.told, waiting.then, waiting.messages, secret, done)
        if service.waiting is None or anew:
            service = _send(service.told, *decide(service.told), secret, done)
        done.services[name] = service
    return done


def _send(told: Told, then: Told, messages: tuple[Message, ...], secret: Secret | None, done: Informed) -> Service:
    """Send a service these messages in their order; the first that it does not take waits, with those behind it."""
    done.messages += [one for one in messages if one not in done.messages]
    for number, message in enumerate(messages):
        try:
            if secret is not None:
                send(message, secret)
        except RigctlError as error:
            done.refused.append(error)
            return Service(told=told, waiting=Waiting(messages=messages[number:], then=then))
        told = told.knowing(then, message.rigs)
    return Service(told=then)
