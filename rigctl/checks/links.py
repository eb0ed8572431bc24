"""NVLink: each pair of cards is joined exactly as declared, by NVML, under load and in nvidia-smi's own words."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks.cards import ABSENT, cards, each_card, why_no_card
from rigctl.checks.load import GPU_STEPS, loaded
from rigctl.checks.matrix import NOT_ASKED, Matrix, read_matrix
from rigctl.checks.say import Say
from rigctl.checks.switch import switched
from rigctl.parse import ParseError, nvlink, smi
from rigctl.parse.xid import same_card

if TYPE_CHECKING:
    from rigctl.model.reading import CommandReply, GpuFacts, Readings
    from rigctl.model.spec import LinkSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

_BRIDGE = "power the rig off and reseat the bridge on both cards; if the same links stay down, try another bridge"


class _Pair(NamedTuple):
    one: GpuFacts
    other: GpuFacts

    @property
    def subject(self) -> str:
        return f"slot{self.one.slot}-slot{self.other.slot}"


def pairs(spec: RigSpec, readings: Readings, topology: CommandReply | None = None) -> list[CheckVerdict]:
    """Each pair of cards has exactly the declared number of active NVLinks.

    NVML's facts, NVML's samples under load and the text of `nvidia-smi topo -m` (`topology`, where it was asked) must
    agree. A pair that the spec does not name must have none.
    """
    if spec.parts.nvswitch_links is not None:
        return switched(spec, readings, topology)
    say = Say("topology.nvlink", source=spec.source("parts.links"))
    if not spec.parts.links:
        return [say.skipped("the spec declares no links between cards")]
    present = cards(readings)
    if not present:
        return [say.error(*why_no_card(readings))]
    matrix = read_matrix(readings, topology)
    declared = {tuple(sorted(link.slots)): link for link in spec.parts.links}
    verdicts = [
        _judge(say, readings, _Pair(one, other), declared.pop((one.slot, other.slot), None), matrix)
        for one, other in combinations(present, 2)
    ]
    for slots, link in sorted(declared.items()):
        subject = f"slot{slots[0]}-slot{slots[1]}"
        reason = f"one of the two cards cannot be seen, so the pair ({_word(link)}) was not measured"
        verdicts.append(say.of(subject, _word(link)).error(reason, "see topology.gpu_count"))
    return verdicts


def _word(link: LinkSpec | None) -> str:
    return f"NV{link.links}" if link is not None and link.kind == "nvlink" else "no NVLink"


def _judge(say: Say, readings: Readings, pair: _Pair, link: LinkSpec | None, matrix: Matrix) -> CheckVerdict:
    asked = link.links if link is not None and link.kind == "nvlink" else 0
    say = say.of(pair.subject, _word(link))
    towards = _links_towards(pair.one, pair.other)
    back = _links_towards(pair.other, pair.one)
    # A card without NVLink says `Not Supported`, which is no gap where none was declared.
    if unread := [gpu.subject for gpu in pair if "links" in gpu.missing and asked]:
        return say.error(
            f"NVML does not tell the links of {', '.join(unread)}", f"nvidia-smi nvlink -s on {readings.rig}"
        )
    lowest = min(
        len(towards),
        len(back),
        _lowest_under_load(readings, pair.one.uuid, towards),
        _lowest_under_load(readings, pair.other.uuid, back),
    )
    by_text = matrix.between(*pair)
    if lowest != asked and (unknown := [gpu.subject for gpu in pair if _ends_unknown(gpu)]):
        return say.error(
            f"NVML does not tell where active links of {', '.join(unknown)} end",
            f"nvidia-smi nvlink -R on {readings.rig}",
        )
    if lowest != asked:
        also = f"; nvidia-smi says {by_text}" if by_text else ""
        reason = (
            f"{lowest} active NVLinks between {pair.one.subject} and {pair.other.subject}, {asked} were declared{also}"
        )
        fix = _BRIDGE if lowest < asked else "correct the spec: it does not name this bridge"
        return say.failed(reason, f"NV{lowest}" if lowest else "no NVLink", fix)
    if matrix.topology is None:
        if matrix.trouble == NOT_ASKED:
            return say.passed(f"{asked} active NVLinks by NVML", _word(link))
        return say.error(
            f"NVML says {_word(link)}, and `nvidia-smi topo -m` cannot confirm it: {matrix.trouble}", matrix.fix
        )
    return _compare(say, readings, pair, asked, by_text)


def _compare(say: Say, readings: Readings, pair: _Pair, asked: int, by_text: str | None) -> CheckVerdict:
    if by_text is None:
        reason = f"`nvidia-smi topo -m` does not show {pair.one.subject} and {pair.other.subject} together"
        return say.error(reason, f"compare `nvidia-smi -L` and `nvidia-smi topo -m` on {readings.rig}")
    in_text = int(by_text[2:]) if by_text.startswith("NV") else 0
    if in_text != asked:
        reason = f"NVML counts {asked} active NVLinks, `nvidia-smi topo -m` says {by_text}"
        return say.failed(reason, by_text, _BRIDGE)
    busy = any(loaded(readings, step, gpu.uuid) for step in GPU_STEPS for gpu in pair)
    also = " and under load" if busy else ""
    return say.passed(f"{asked} active NVLinks by NVML{also}; nvidia-smi says {by_text}", by_text)


def _ends_unknown(gpu: GpuFacts) -> bool:
    """Whether a link of the card is active and NVML does not tell its other end."""
    return any(link.active and not link.remote_pci_bus_id for link in gpu.links)


def _links_towards(one: GpuFacts, other: GpuFacts) -> tuple[int, ...]:
    """Return the numbers of the active links of `one` that end at `other`."""
    return tuple(
        link.link
        for link in one.links
        if link.active and link.remote_pci_bus_id and same_card(link.remote_pci_bus_id, other.pci_bus_id)
    )


def _lowest_under_load(readings: Readings, uuid: str, links: tuple[int, ...]) -> int:
    """Return the fewest of a card's `links` that were up in any loaded sample; all of them where no sample tells."""
    busy = [one.gpu.links_active for step in GPU_STEPS for one in loaded(readings, step, uuid)]
    counts = [sum(active[link] for link in links if link < len(active)) for active in busy if active]
    return min(counts, default=len(links))


def speed(spec: RigSpec, readings: Readings, status: CommandReply | None = None) -> list[CheckVerdict]:
    """Each active link of each card runs at the declared speed, by NVML and by `nvidia-smi nvlink -s` (`status`)."""
    least = spec.parts.min_nvlink_gb_per_s
    say = Say("topology.nvlink_speed", expected=least, unit="GB/s", source=spec.source("parts.min_nvlink_gb_per_s"))
    linked = spec.parts.nvswitch_links is not None or any(link.kind == "nvlink" for link in spec.parts.links)
    if least is None or not linked:
        return [say.skipped("the spec declares no NVLink speed")]
    in_text, trouble = _speeds_in_text(status)

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        if not any(link.active for link in gpu.links):
            return say.error("no active NVLink to measure", "see topology.nvlink")
        active = [link for link in gpu.links if link.active]
        by_nvml = [link.speed_gb_per_s for link in active if link.speed_gb_per_s is not None]
        by_text = in_text.get(gpu.uuid, [])
        speeds = by_nvml + by_text
        if max(len(by_nvml), len(by_text)) < len(active) or (trouble and status is not None):
            told = (reason for name, reason in gpu.missing.items() if name.endswith(".speed_gb_per_s"))
            why = (trouble if status is not None else "") or next(told, "not every active link tells it")
            return say.error(
                f"the speed of its links could not be read: {why}", f"nvidia-smi nvlink -s on {readings.rig}"
            )
        if min(speeds) < least:
            reason = f"its slowest link runs at {min(speeds):.3f} GB/s, {least} GB/s were declared"
            return say.failed(reason, min(speeds), _BRIDGE)
        return say.passed(f"every active link at {min(speeds):.3f} GB/s or more", min(speeds))

    return [v for v in each_card(say, spec, readings, judge) if v.subject != ABSENT]


def _speeds_in_text(reply: CommandReply | None) -> tuple[dict[str, list[float]], str]:
    """Return link speeds by UUID from `nvidia-smi nvlink -s`, and why there are none."""
    if reply is None or reply.exit_status < 0:
        return {}, reply.stderr if reply else NOT_ASKED
    if failure := smi.failure(reply.stdout + reply.stderr, reply.exit_status):
        return {}, f"{failure.what} ({failure.said})"
    try:
        status = nvlink.parse_status(reply.stdout)
    except ParseError as error:
        return {}, str(error)
    return {card.uuid: [link.gb_per_s for link in card.active if link.gb_per_s is not None] for card in status}, ""
