"""Compute with PyTorch on each card, or on the CPU; run by the environment's own Python, prints one JSON object.

Its one argument is `cuda` or `cpu`. A product of matrices of ones is known beforehand: 64 in each place.
"""

import json
import sys

import torch

SIZE = 64


def fault_of(device: str) -> str:
    """Why a device does not compute; empty where it does."""
    try:
        ones = torch.ones(SIZE, SIZE, device=device)
        found = float((ones @ ones).sum())
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return "" if found == SIZE**3 else f"64 x 64 ones squared sum up to {found:g}, not {SIZE**3}"


def main(kind: str) -> None:
    """Print the JSON object."""
    devices = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if kind == "cuda" else ["cpu"]
    faults = {device: fault_of(device) for device in devices}
    answered = {
        "torch": torch.__version__,
        "devices": [device for device, fault in faults.items() if not fault],
        "faults": [f"{device}: {fault}" for device, fault in faults.items() if fault],
    }
    json.dump(answered, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
