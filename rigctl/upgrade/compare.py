"""Compare a rig after an upgrade with what it was before. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rigctl.model.upgrade import Capture
    from rigctl.upgrade.port import Smoke

RATES = "throughput."
"""Checks whose figures are better the higher they are."""


def lost_figures(before: Smoke, after: Smoke, max_loss_share: float) -> tuple[str, ...]:
    """Say which rates fell by more than a share, and which were measured before and are not now."""
    said = []
    for name, had in sorted(before.figures.items()):
        if not name.startswith(RATES) or had <= 0:
            continue
        has = after.figures.get(name)
        if has is None:
            said.append(f"{name} was {had:g} and was not measured any more")
        elif has < had * (1 - max_loss_share):
            said.append(f"{name} {has:g}, was {had:g} ({has / had - 1:+.0%})")
    return tuple(said)


def identity_differences(before: Capture, after: Capture) -> tuple[str, ...]:
    """Say which cards and links are not as they were; a bus number alone is no difference."""
    said = []
    now = {card.uuid: card for card in after.cards}
    for card in before.cards:
        same = now.get(card.uuid)
        if same is None:
            said.append(f"{card.model} {card.uuid} at {card.place} is gone")
        elif same.place != card.place:
            said.append(f"{card.uuid} was at {card.place}, is at {same.place}")
        elif same.pcie != card.pcie:
            said.append(f"{card.uuid} at {card.place}: PCIe was {card.pcie}, is {same.pcie}")
    known = {card.uuid for card in before.cards}
    said += [f"{card.model} {card.uuid} at {card.place} is new" for card in after.cards if card.uuid not in known]
    said += [f"link {link} is gone" for link in before.links if link not in after.links]
    said += [f"link {link} is new" for link in after.links if link not in before.links]
    said += [f"container {name} did not come back" for name in before.containers if name not in after.containers]
    return tuple(said)


def package_differences(before: Capture, after: Capture) -> tuple[str, ...]:
    """Say which packages, versions, holds and marks are not as they were."""
    had, has = ({one.name: one for one in capture.packages} for capture in (before, after))
    said = [f"{name} {had[name].version} is gone" for name in sorted(had.keys() - has.keys())]
    said += [f"{name} {has[name].version} is new" for name in sorted(has.keys() - had.keys())]
    for name in sorted(had.keys() & has.keys()):
        one, other = had[name], has[name]
        if one.version != other.version:
            said.append(f"{name} was {one.version}, is {other.version}")
        if one.held != other.held:
            said.append(f"{name} is {'held' if other.held else 'not held any more'}")
        if one.manual != other.manual:
            said.append(f"{name} counts as {'asked for' if other.manual else 'brought by another package'}")
    return tuple(said)


def file_differences(before: Capture, after: Capture) -> tuple[str, ...]:
    """Say which of the captured files are not as they were."""
    return tuple(
        f"{path} {'differs' if path in after.files and after.files[path] is not None else 'is gone'}"
        if content is not None
        else f"{path} is new"
        for path, content in sorted(before.files.items())
        if after.files.get(path) != content
    )


def setting_differences(before: Capture, after: Capture) -> tuple[str, ...]:
    """Say which cards keep to another power limit or persistence mode; what was not told before is left out."""
    said = []
    now = {card.uuid: card for card in after.cards}
    for card in before.cards:
        same = now.get(card.uuid)
        if same is None:
            continue  # its absence is told elsewhere
        where = f"{card.uuid} at {card.place}"
        if card.power_limit_w is not None and same.power_limit_w != card.power_limit_w:
            has = "is not told" if same.power_limit_w is None else f"is {same.power_limit_w:g} W"
            said.append(f"{where}: its power limit was {card.power_limit_w:g} W, {has}")
        if card.persistence is not None and same.persistence != card.persistence:
            words = {True: "on", False: "off", None: "not told"}
            said.append(f"{where}: its persistence mode was {words[card.persistence]}, is {words[same.persistence]}")
    return tuple(said)


def all_differences(before: Capture, after: Capture) -> tuple[str, ...]:
    """Say everything that is not as it was, kernel and loaded driver included."""
    said = [
        f"{what} was {had or 'none'}, is {has or 'none'}"
        for what, had, has in (
            ("the running kernel", before.kernel, after.kernel),
            ("the loaded driver", before.loaded, after.loaded),
            ("what GRUB has saved", before.grub_saved, after.grub_saved if before.grub_saved is not None else None),
        )
        if had != has
    ]
    return (
        *said,
        *package_differences(before, after),
        *file_differences(before, after),
        *identity_differences(before, after),
        *setting_differences(before, after),
    )
