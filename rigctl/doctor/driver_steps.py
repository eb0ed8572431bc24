"""The ladder's upper half: from the firmware to the cards. Pure: facts → what is seen.

On a rig without a driver, what provisioning itself puts right (nouveau, headers that apt offers) is no finding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rigctl.doctor.facts import branch, branch_of_package
from rigctl.doctor.finding import Seen, Step
from rigctl.parse import ParseError, kernel_module

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.doctor.facts import Kernel, RigFacts


def secure_boot(facts: RigFacts) -> Seen:
    """Would the firmware's rule keep the driver's module out."""
    state = facts.system.secure_boot
    if not state.on:
        return Seen(ok=True, found="off")
    if facts.system.loaded:
        return Seen(ok=True, found="on, and the driver's module is loaded")
    if state.signer:
        return Seen(ok=True, found=f"on, the module is signed by {state.signer}")
    if state.key_enrolled:
        return Seen(ok=True, found="on, the rig's own key is enrolled")
    return Seen(
        ok=False,
        found="on, and a module built on the rig is signed by nobody it trusts",
        fix="turn it off in the firmware, or enrol a key at the console: mokutil --import "
        "/var/lib/shim-signed/mok/MOK.der",
    )


def nouveau(facts: RigFacts) -> Seen:
    """Does nouveau hold the cards."""
    if not facts.system.nouveau:
        return Seen(ok=True, found="not loaded")
    if not facts.has_driver:
        return Seen(ok=True, found="loaded; provisioning bars it")
    fix = (
        "run there: update-initramfs -u && systemctl reboot"
        if facts.system.nouveau_barred
        else f"run: rigctl provision {facts.name} --tags nvidia_driver (bars nouveau and restarts the rig)"
    )
    return Seen(ok=False, found="loaded, so the NVIDIA driver cannot take the cards", fix=fix)


def headers(facts: RigFacts) -> Seen:
    """Can the module be built for the running and for the next kernel."""
    lacking = [kernel for kernel in facts.system.kernels if not kernel.headers and not kernel.module]
    if not lacking:
        has = {kernel.release: "headers" if kernel.headers else "module there" for kernel in facts.system.kernels}
        named = _named(facts, facts.system.kernels)
        return Seen(ok=True, found=", ".join(f"{name}: {has[name.split()[0]]}" for name in named))
    missing = " ".join(f"linux-headers-{kernel.release}" for kernel in lacking)
    offered = all(kernel.headers_offered for kernel in lacking)
    if not facts.has_driver and (offered or not facts.system.lists_read):
        return Seen(ok=True, found=f"provisioning installs {missing}")
    if offered:
        return Seen(
            ok=False,
            found=f"missing for {', '.join(_named(facts, lacking))}",
            fix=f"run there: apt-get install {missing}",
        )
    gone = [kernel for kernel in lacking if not kernel.headers_offered]
    return Seen(
        ok=False,
        found=f"missing for {', '.join(_named(facts, gone))}, and apt offers none",
        fix="run there: apt-get update; if there are none still: apt-get install linux-generic (Debian: "
        "linux-image-amd64), then restart the rig",
    )


def compiler(facts: RigFacts) -> Seen:
    """Is there a gcc that knows the options of the kernel's own.

    A newer gcc builds for an older kernel; an older one stops at options that it does not know
    (`unrecognized command-line option '-ftrivial-auto-var-init=zero'`).
    """
    have = facts.system.compilers
    if not have:
        # DKMS depends on a compiler: where there is none, there is no module to be built either, or it is prebuilt.
        return Seen(ok=True, found="none installed; DKMS brings one")
    for kernel in facts.system.kernels:
        wanted = kernel.compiler_major
        if wanted is not None and not kernel.module and max(have) < wanted:
            if not facts.has_driver:
                return Seen(ok=True, found=f"provisioning installs gcc {wanted}, kernel {kernel.release} needs it")
            return Seen(
                ok=False,
                found=f"kernel {kernel.release} was built by gcc {wanted}, installed is gcc {max(have)}",
                fix=f"run there: apt-get install gcc-{wanted}",
            )
    return Seen(ok=True, found=", ".join(f"gcc {major}" for major in have))


def dkms(facts: RigFacts) -> Seen:
    """Is the module built for the running and for the next kernel."""
    lines = [line for line in facts.system.dkms if line.startswith("nvidia")]
    if not lines:
        return Seen(ok=True, found="builds no NVIDIA module")
    try:
        builds = kernel_module.parse_dkms("\n".join(lines))
    except ParseError as error:
        return Seen(ok=False, found=str(error), fix="run there: dkms status; report this form")
    for build, line in zip(builds, lines, strict=True):
        if build.warning:
            return Seen(ok=False, found=line, fix=f"run there: dkms install --force {build.module} -k {build.kernel}")
    lacking = [kernel for kernel in facts.system.kernels if not kernel.module]
    if not lacking:
        return Seen(ok=True, found=f"built for {', '.join(_named(facts, facts.system.kernels))}")
    module = builds[0].module
    return Seen(
        ok=False,
        found=f"not built for {', '.join(_named(facts, lacking))}",
        fix="; ".join(f"run there: dkms install {module} -k {kernel.release}" for kernel in lacking)
        + f" (its words: /var/lib/dkms/{module}/build/make.log)",
    )


def reboot(facts: RigFacts) -> Seen:
    """Does the rig run what is installed."""
    coming = facts.system.kernels[1:]
    if not facts.system.reboot and not coming:
        return Seen(ok=True, found="none pending")
    why = ", ".join(facts.system.reboot_for[:4]) or "a package asked for it"
    if coming:
        why = f"kernel {facts.system.kernels[0].release} runs, {coming[0].release} is next"
    return Seen(ok=False, found=f"pending: {why}", fix="when nobody uses the rig, run there: systemctl reboot")


def installed(facts: RigFacts) -> Seen:
    """Is the driver that is installed of the branch that was asked for."""
    if not facts.has_driver:
        return Seen(ok=True, found=f"none yet; provisioning installs {facts.asked_branch}")
    fix = f"run: rigctl provision {facts.name} --tags nvidia_driver"
    branches = facts.driver_packages
    both = " and ".join(f"{name} ({package})" for name, package in sorted(branches.items()))
    version = facts.system.library
    if not version:
        return Seen(ok=False, found=f"{next(iter(branches.values()))} is installed, its library is missing", fix=fix)
    if branch(version) != facts.asked_branch:
        mixed = f"; packages of {both}" if len(branches) > 1 else ""
        return Seen(ok=False, found=f"{version}, asked for is {facts.asked_branch}{mixed}", fix=fix)
    if len(branches) > 1:
        return Seen(ok=False, found=f"packages of two branches: {both}", fix=fix)
    return Seen(ok=True, found=version)


def loaded(facts: RigFacts) -> Seen:
    """Is the loaded driver the one that programs bring the library for."""
    if not facts.has_driver:
        return Seen(ok=True, found=facts.system.loaded or "none yet")
    if facts.system.loaded == facts.system.library:
        return Seen(ok=True, found=facts.system.loaded)
    if not facts.system.loaded and not facts.system.kernels[0].module:
        return Seen(
            ok=False,
            found=f"no module of it for kernel {facts.system.kernels[0].release}",
            fix=f"run: rigctl provision {facts.name} --tags nvidia_driver",
        )
    if not facts.system.loaded:
        return Seen(
            ok=False, found="no driver is loaded", fix="run there: modprobe nvidia; journalctl -k -b | grep NVRM"
        )
    return Seen(
        ok=False,
        found=f"loaded is {facts.system.loaded}, the library is {facts.system.library or 'missing'}",
        fix="when nobody uses the rig, run there: systemctl reboot",
    )


def cards_on_bus(facts: RigFacts) -> Seen:
    """Has the firmware found as many cards as the spec asks for."""
    there, asked = len(facts.system.cards_on_bus), facts.asked_cards
    if there == asked:
        return Seen(ok=True, found=f"{there} on the PCI bus")
    return Seen(
        ok=False,
        found=f"{there} on the PCI bus, the spec asks for {asked}",
        fix="power off, reseat the missing card and its power plugs"
        if there < asked
        else "correct parts.gpu_count in the spec",
    )


def cards_of_driver(facts: RigFacts) -> Seen:
    """Does the driver see every card that the firmware has found."""
    if not facts.system.loaded:
        return Seen(ok=not facts.has_driver, found="no driver is loaded")
    seen, there = len(facts.system.cards), len(facts.system.cards_on_bus)
    if seen >= there:
        return Seen(ok=True, found=f"{seen} seen by the driver")
    said = f" ({facts.system.cards_error})" if facts.system.cards_error else ""
    return Seen(
        ok=False,
        found=f"{seen} of {there} seen by the driver{said}",
        fix="run there: journalctl -k -b | grep -E 'NVRM|Xid'; then power the rig off and on",
    )


def cards_of_login(facts: RigFacts) -> Seen:
    """Do programs of the login see every card that root sees."""
    total = len(facts.system.cards)
    hidden = [uuid for uuid in facts.system.cards if uuid not in facts.login_cards]
    if hidden:
        why = f": {facts.login_says}" if facts.login_says else ""
        return Seen(
            ok=False,
            found=f"{len(hidden)} of {total} hidden from {facts.user}{why}",
            fix=f"run there: ls -l /dev/nvidia*; then usermod -aG video,render {facts.user}, and log in again",
        )
    visible = facts.cuda_visible
    if visible is not None and len(set(visible)) < total:
        return Seen(
            ok=False,
            found=f"CUDA_VISIBLE_DEVICES={','.join(visible)} hides {total - len(set(visible))} of {total} "
            f"from {facts.user}",
            fix=f"run there: grep -rs CUDA_VISIBLE_DEVICES /etc/environment /etc/profile.d ~{facts.user}/.profile "
            f"~{facts.user}/.bashrc; and remove it",
        )
    return Seen(ok=True, found=f"{total} seen by {facts.user}" if total else "none")


def holds(facts: RigFacts) -> Seen:
    """Is no package held that stands against what was asked for."""
    against = [name for name in facts.system.held if branch_of_package(name) not in ("", facts.asked_branch)]
    if not against:
        return Seen(ok=True, found=f"{len(facts.system.held)} held" if facts.system.held else "none")
    return Seen(
        ok=False,
        found=f"held, but {facts.asked_branch} is asked for: {', '.join(against[:4])}",
        fix=f"run there: apt-mark unhold {' '.join(against)}",
    )


def unattended(facts: RigFacts) -> Seen:
    """Can the driver's packages be upgraded by themselves under a running rig."""
    if not facts.system.unattended.on:
        return Seen(ok=True, found="off")
    open_to_it = [
        name
        for name in facts.system.packages
        if "nvidia" in name and name not in facts.system.held and not _barred(name, facts.system.unattended.never)
    ]
    if not open_to_it:
        return Seen(ok=True, found="on, NVIDIA's packages excepted")
    return Seen(
        ok=False,
        found=f"on, and may replace {open_to_it[0]}"
        + (f" and {len(open_to_it) - 1} more" if len(open_to_it) > 1 else ""),
        fix=f"run: rigctl provision {facts.name} --tags nvidia_driver (excepts and holds them)",
    )


def _barred(package: str, patterns: Iterable[str]) -> bool:
    # unattended-upgrades matches its patterns at the beginning of a name.
    return any(re.match(pattern, package) for pattern in patterns)


def _named(facts: RigFacts, kernels: Iterable[Kernel]) -> list[str]:
    running = facts.system.kernels[0].release
    return [f"{k.release} ({'running' if k.release == running else 'next'})" for k in kernels]


_MODULE_CAUSES = ("packages", "Secure Boot", "nouveau", "kernel headers", "compiler", "DKMS", "pending reboot")
DRIVER_STEPS: tuple[Step[RigFacts], ...] = (
    Step("Secure Boot", secure_boot),
    Step("nouveau", nouveau),
    Step("kernel headers", headers, ("system", "disk /")),
    Step("compiler", compiler),
    Step("DKMS", dkms, ("packages", "kernel headers", "compiler")),
    Step("driver", installed, ("packages",)),
    Step("pending reboot", reboot),
    Step("loaded driver", loaded, (*_MODULE_CAUSES, "driver")),
    Step("cards", cards_on_bus),
    Step("cards of the driver", cards_of_driver, (*_MODULE_CAUSES, "driver", "loaded driver")),
    Step("cards of the login", cards_of_login, ("cards of the driver", "loaded driver")),
    Step("holds", holds, ("driver",)),
    Step("unattended upgrades", unattended),
)
"""In order of cause."""
