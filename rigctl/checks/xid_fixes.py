"""What to do about an Xid: what is known of the number, else what NVIDIA's catalogue says in its one word."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rigctl.parse.xid import XidClass

_BAD_ACCESS = "a kernel made a bad access: if nothing but our own load ran, suspect the card's memory"
_BY_NUMBER = {
    13: _BAD_ACCESS,
    31: _BAD_ACCESS,
    48: "uncorrectable memory error: replace the card if it comes again",
    54: "the card's power cables are not connected properly",
    62: "the card's controller halted: reboot {rig}; when it comes again, replace the card",
    64: "a row of its memory could not be replaced: see memory.remapped_rows; replace the card",
    74: "an NVLink failed: power off and reseat the bridge on both cards",
    79: "the card left the bus: reboot {rig}, then power cables, riser and slot; then the supply",
    119: "the card's firmware did not answer: reboot {rig}; a newer driver may help",
    120: "the card's firmware failed: reboot {rig}; a newer driver may help",
}
_BY_ACTION = {
    "RESTART_APP": "start the program that ran on the card again; when it comes again, suspect the card",
    "RESET_GPU": "reset the card (`nvidia-smi -r`, with nothing running on it) or reboot {rig}",
    "RESTART_BM": "reboot {rig}",
    "RESTART_VM": "restart the virtual machine that has the card",
    "CHECK_MECHANICALS": "power off; check seat and cables of the card",
    "CHECK_UVM": "look at the messages of nvidia-uvm in the kernel log of {rig}",
    "UPDATE_SWFW": "another driver, or newer firmware of the card",
    "CONTACT_SUPPORT": "ask the card's vendor, with `rigctl evidence {rig}`",
    "IGNORE": "nothing by itself; look at what came with it in the kernel log",
    "WORKFLOW_XID_45": "the driver cleared away after a process: look for the Xid that came before it",
    "WORKFLOW_XID_48": "uncorrectable memory error: see memory.ecc and memory.remapped_rows",
    "WORKFLOW_NVLINK_ERR": "an NVLink failed: see topology.nvlink; power off and reseat the bridge on both cards",
    "WORKFLOW_NVLINK5_ERR": "an NVLink failed: see topology.nvlink and topology.fabric_manager",
    "XID_154": "the driver says what the card needs: reset or reboot, see the message",
}
"""NVIDIA's words for what to do at once (its Xid catalogue of 2025-10-29), as people say it."""


def fix_of(number: int, meaning: XidClass, rig: str) -> str:
    """Return what to do about an Xid of this number on `rig`."""
    known = _BY_NUMBER.get(number) or _BY_ACTION.get(meaning.action)
    if known is None:
        known = f"NVIDIA's catalogue says {meaning.action or 'nothing'} for Xid {number}"
    return f"{known.format(rig=rig)}; then `rigctl accept {rig}`"
