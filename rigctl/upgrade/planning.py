"""From what a rig and the tables say to the plan that people read. Pure, but for the tables of the role `compat`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from rigctl import assets, compat
from rigctl.model.upgrade import Card, PlannedPackage, RigPlan
from rigctl.upgrade.inventory_file import wished_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.reading import Facts, GpuFacts
    from rigctl.model.rig import Rig
    from rigctl.model.upgrade import Wishes

_WORDS = ("branch", "version", "source", "flavour", "modules")
VARIABLES = (
    *(f"nvidia_driver_{word}" for word in _WORDS), "nvidia_driver_allow_known_bad", "nvidia_driver_hold",
    "nvidia_driver_reboot", "kernel_version", "kernel_reboot", "nvidia_driver_kernel_series",
    "cuda_version", "cuda_allow_unrunnable", "pytorch_version", "pytorch_build", "reboot_accepted_risks",
)  # fmt: skip
"""The role variables that bear on a plan."""


@dataclass(frozen=True)
class PlanSeen:
    """What was found out for a plan."""

    facts: Facts
    answer: dict[str, Any]
    """Of `on_rig.planning.plan`."""
    variables: dict[str, Any]


def driver_request(wishes: Wishes, variables: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the driver's role is to look for; None where the driver stays as it is."""
    if wishes.driver is None:
        return None
    known_bad = assets.roles_dir() / "nvidia_driver" / "files" / "known_bad.yml"
    allowed = bool(variables["nvidia_driver_allow_known_bad"])
    listed = [] if allowed else yaml.safe_load(known_bad.read_text(encoding="utf-8"))
    wished = {**variables, **wished_variables(wishes)}
    return {**{word: str(wished[f"nvidia_driver_{word}"]) for word in _WORDS}, "known_bad": listed}


def kernel_request(wishes: Wishes, variables: Mapping[str, Any]) -> dict[str, str] | None:
    """What the kernel's role is to look for; None where the kernel stays as it is."""
    if wishes.kernel is None:
        return None
    wished = {**variables, **wished_variables(wishes)}
    return {"version": wishes.kernel, "branch": str(wished["nvidia_driver_branch"])}


def plan_of(rig: Rig, wishes: Wishes, seen: PlanSeen) -> RigPlan:
    """Put the plan of one rig together."""
    facts, offer = seen.facts, seen.answer["offer"]
    has = {
        "driver": facts.driver.loaded or "",
        "cuda": facts.tools.nvcc or "",
        "torch": facts.tools.torch or "",
        "kernel": facts.kernel,
    }
    gets = {name: value for name, value in wishes if value is not None}
    if offer is not None:
        gets["driver"] = offer["target_driver"] or gets["driver"]
    reboot = offer is not None and offer["target_driver"] != has["driver"]
    reboot = reboot or gets.get("kernel", has["kernel"]) != has["kernel"]
    wished = wished_variables(wishes)
    return RigPlan(
        rig=rig.name,
        has=has,
        gets=gets,
        source=offer["source"] if offer is not None else "",
        packages=tuple(PlannedPackage(**one) for one in seen.answer["packages"]),
        reboot=reboot,
        breaks=tuple(_goes_along(wished, seen)),
        refusals=tuple(_refusals(wished, seen, reboot=reboot)),
        inventory={name: value for name, value in wished.items() if str(seen.variables.get(name, "")) != value},
        folders=_built_anew(rig, wishes, seen.variables),
    )


def _refusals(wished: dict[str, str], seen: PlanSeen, *, reboot: bool) -> list[str]:
    offer, after = seen.answer["offer"], {**seen.variables, **wished}
    said = [str(offer["refusal"])] if offer is not None and offer["refusal"] else []
    said += compat.rules().compat_refusals(
        {
            "driver": str(after["nvidia_driver_branch"]),
            "cuda": [str(after["cuda_version"])],
            "torch": str(after["pytorch_version"]),
            "build": str(after["pytorch_build"]),
            "python": "",
            "allow_cuda": bool(after["cuda_allow_unrunnable"]),
        }
    )
    if held := [one["name"] for one in seen.answer.get("held", ()) if not _is_ours(one, wished, seen)]:
        said.append(f"held by somebody, and it would change; to let go: apt-mark unhold {' '.join(held)}")
    said += _kernel_refusals(wished, seen)
    for name, wish in (("nvidia_driver_reboot", "nvidia_driver_branch"), ("kernel_reboot", "kernel_version")):
        if reboot and wish in wished and seen.variables[name] != "when_needed":
            said.append(f"it needs a restart, and the inventory says {name}: {seen.variables[name]}")
    accepted = tuple(f"{name}:" for name in seen.variables["reboot_accepted_risks"])
    return said + [f"it would not come back from a restart: {one}" for one in seen.answer["risks"]
                   if reboot and not one.startswith(accepted)]  # fmt: skip


def _is_ours(held: dict[str, Any], wished: dict[str, str], seen: PlanSeen) -> bool:
    """Whether a hold is the roles' own: on the driver's parts where they hold them, on kernels that are to change."""
    if held["driver"]:
        return bool(seen.variables["nvidia_driver_hold"])
    return "kernel_version" in wished and str(held["name"]).startswith("linux-")


def _kernel_refusals(wished: dict[str, str], seen: PlanSeen) -> list[str]:
    """Why the kernel cannot be had; nothing where it stays."""
    kernel, series = seen.answer["kernel"], str(seen.variables["nvidia_driver_kernel_series"])
    if kernel is None:
        return []
    said = [f"the kernel: {kernel['refusal']}"] if kernel["refusal"] else []
    if series and not wished["kernel_version"].startswith(f"{series}."):
        said.append(
            f"the inventory says nvidia_driver_kernel_series: {series}, and {wished['kernel_version']} is not of it"
        )
    return said


def _goes_along(wished: dict[str, str], seen: PlanSeen) -> list[str]:
    """What else changes with the wishes."""
    said = []
    before, after = seen.variables, {**seen.variables, **wished}
    old, new = (_torch_choice(variables) for variables in (before, after))
    if old and new and old != new:
        said.append(f"PyTorch becomes {new} (was {old}): the tables choose it by the driver")
    if seen.answer["offer"] is not None and seen.answer["packages"]:
        said.append("gpu-burn is built again, and PyTorch tried on every card")
    return said + _with_the_kernel(seen.answer["kernel"])


def _with_the_kernel(kernel: dict[str, Any] | None) -> list[str]:
    """What is built for a kernel, and what no longer moves by itself."""
    if kernel is None or kernel["refusal"]:
        return []
    said = [f"DKMS builds {', '.join(kernel['dkms'])} for the kernel"] if kernel["dkms"] else []
    metas = ", ".join(name for name in kernel["metas"] if name in kernel["to_hold"])
    return said + ([f"{metas} held: updates bring no other kernel"] if metas else [])


def _built_anew(rig: Rig, wishes: Wishes, variables: Mapping[str, Any]) -> tuple[str, ...]:
    """The folders that the change may build anew, and so has to keep for the way back.

    A virtual environment with PyTorch takes gigabytes: it is kept where PyTorch changes, by a wish or by the tables.
    """
    software, after = rig.spec.software, {**variables, **wished_variables(wishes)}
    decided = str(variables["pytorch_build"]) in ("cpu", "distribution")
    exact = str(variables["pytorch_version"]) != "auto"
    by_driver = wishes.driver is not None and not decided
    torch = wishes.torch is not None or (by_driver and (exact or _torch_choice(variables) != _torch_choice(after)))
    burner = wishes.driver is not None or wishes.cuda is not None
    return (*((software.gpu_burn_dir,) if burner else ()), *((software.torch_venv,) if torch else ()))


def _torch_choice(variables: Mapping[str, Any]) -> str:
    """What the role would install; empty where the tables do not decide it."""
    version, build = str(variables["pytorch_version"]), str(variables["pytorch_build"])
    if build in ("cpu", "distribution"):
        return ""
    answer = compat.look_up(compat.Asked(driver=str(variables["nvidia_driver_branch"])))
    return answer.choice if version == "auto" else version


def cards_of(facts: Facts) -> tuple[Card, ...]:
    """The cards as they must be there again: where by the way down from the root port, never by a bus number."""
    places = {place.uuid: place for place in facts.places}

    def place(gpu: GpuFacts) -> str:
        seen = places.get(gpu.uuid)
        if seen is None or (seen.root_path or seen.root_port) is None:
            return f"slot{gpu.slot}"
        return f"{seen.root_path or seen.root_port} {seen.below or ''}".strip()

    return tuple(
        Card(uuid=gpu.uuid, place=place(gpu), model=gpu.name, pcie=f"gen{gpu.max_pcie_gen} x{gpu.max_pcie_width}")
        for gpu in facts.gpus
    )


def links_of(facts: Facts) -> tuple[str, ...]:
    """The active NVLinks of each card, by where they lead."""
    said = []
    slots = {gpu.pci_bus_id.lower(): gpu.slot for gpu in facts.gpus}
    for gpu in facts.gpus:
        leads = [slots.get((link.remote_pci_bus_id or "").lower(), 0) for link in gpu.links if link.active]
        said += [
            f"slot{gpu.slot}-{f'slot{to}' if to else 'elsewhere'} NV{leads.count(to)}" for to in sorted(set(leads))
        ]
    return tuple(said)
