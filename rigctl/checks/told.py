"""What a program of the agent told in its file: read, or why it cannot be; and which card is which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rigctl.checks import load
from rigctl.checks.cards import each_card

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.checks.say import Say
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict


class Told(BaseModel):
    """What every such file holds."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    error: str | None = None
    hint: str = ""


class Card(BaseModel):
    """One card as the program names it."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    slot: int | None = None
    """None for the processor."""
    uuid: str | None = None
    """None where this version of torch does not tell it."""


TOLD = TypeVar("TOLD", bound=Told)
CARD = TypeVar("CARD", bound=Card)


class OfDevice(Told, Generic[CARD]):
    """What was measured on the device that was named, card by card."""

    device: str
    cards: tuple[CARD, ...]


def read(readings: Readings, step: str, kind: type[TOLD]) -> TOLD | load.NoLoad:
    """Return what the program of `step` told, or why there is nothing to judge."""
    file = f"{step}.json"
    text, look = readings.logs.get(file), f"look at {step}.log of {readings.rig} in the run directory"
    if text is None:
        return load.why_no_load(readings, step)
    try:
        told = kind.model_validate_json(text)
    except ValidationError as error:
        what = error.errors()[0]
        # A program that could not measure tells nothing but why.
        try:
            said = Told.model_validate_json(text)
        except ValidationError:
            said = Told()
        if said.error is not None:
            return load.NoLoad(said.error, said.hint or look)
        where = ".".join(map(str, what["loc"]))
        return load.NoLoad(f"{file} cannot be read: {where}: {what['msg']}", look)
    return told if told.error is None else load.NoLoad(told.error, told.hint or look)


def each_named(
    say: Say,
    spec: RigSpec,
    readings: Readings,
    told: OfDevice[CARD],
    judge: Callable[[CARD, GpuFacts | None, Say], CheckVerdict],
) -> list[CheckVerdict]:
    """Judge what was told of each card; on the processor there is one of all, and no card behind it.

    Only asked where the program ran on the device that the spec names.
    """
    found, look = told.cards, f"look at the step's log of {readings.rig} in the run directory"
    if told.device == "cpu":
        return [judge(found[0], None, say) if len(found) == 1 else say.error("not one processor was measured", look)]
    known = {card.slot: card for card in found}
    if len(known) != len(found):
        return [say.error("one card was measured twice", look)]

    def of_card(gpu: GpuFacts, say: Say) -> CheckVerdict:
        card = known.get(gpu.slot)
        if card is None:
            return say.error("this card was not measured", "see topology.gpu_count")
        if card.uuid is not None and card.uuid != gpu.uuid:
            reason = f"the program measured {card.uuid} here, NVML says {gpu.uuid}"
            return say.error(reason, "CUDA_VISIBLE_DEVICES or CUDA_DEVICE_ORDER set for everybody on the rig?")
        return judge(card, gpu, say)

    return each_card(say, spec, readings, of_card)


def other_device(found: str, wanted: str, rig: str) -> load.NoLoad | None:
    """Say that a program ran on another device than the spec names; None where it did not."""
    if found == wanted:
        return None
    reason = f"it ran on device {found!r}, the spec names {wanted!r}"
    return load.NoLoad(reason, f"rigctl accept {rig}; a workload is never run on another device instead")
