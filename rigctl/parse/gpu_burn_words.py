"""The sentences that gpu-burn, its workers and the nvidia-smi below it are known to write, by what they mean."""

from __future__ import annotations

import re


def _any(*forms: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{form})" for form in forms))


QUIET = _any(
    r"Run length not specified in the command line\.",
    r"Using compare file: \S+",
    r"Initialized device \d+ with \d+ MB of memory \(\d+ MB available, using \d+ MB of it\), using \w+"
    r"(?:, using Tensor Cores)?",
    r"Results are \d+ bytes each, thus performing \d+ iterations",
    r"MIG .+ Device +\d+: \(UUID: [\w-]+\)",
)
"""Said in good order."""

ENDS = _any(
    r"Killing processes with SIGTERM \(soft kill\)",
    r"Killing processes with SIGKILL \(force kill\)",
    r"Killing processes\.\.",
    r"Freed memory for dev \d+",
    r"Uninitted cublas",
    r"done\b",
)
"""Said while it comes to its end."""

HELP = _any(
    r"GPU Burn\b",
    r"Usage: gpu-burn.*",
    r"-(?:m [XN]%?|d|tc|l|i N|c FILE|stts T|h)\s.*",
    r"Examples:",
    r"gpu-burn -.*#.*",
    r"ID \d+: .*",
)
"""Its help, or its list of cards: printed with exit status 0 when an argument merely contains `-h` or `-l`."""

ABORTS = _any(
    r"No clients are alive!\s+Aborting",
    r"No CUDA devices",
    r"what\(\):\s+No CUDA capable GPUs found\.?",
    r"terminate called after throwing an instance of .*",
)
"""It gave up."""

TROUBLE = _any(
    r"(?:gpu-burn )?Couldn't init (?:a GPU test|CUDA): .*",
    r"cuInit returned \d+ \(.*",
    r"read\[\d+\] error -?\d+",
    r"Could not invoke nvidia-smi, no temps available",
    r"Failed to (?:fork|wait|kill).*",
    r"Error (?:in|\().*",
    r"Caught exception.*",
    r"Failure during compute: .*",
    r"Couldn't .*",
    r"sh: \d+: nvidia-smi: not found",
    r"(?:/bin/)?sh: (?:line \d+: )?nvidia-smi: command not found",
    r"NVIDIA-SMI has failed because.*",
    r"Failed to initialize NVML:.*",
    r"NVML library version: .*",
    r"Unable to determine the device handle.*",
    r"No devices were found",
    r"Aborted(?: \(core dumped\))?",
    r"Segmentation fault(?: \(core dumped\))?",
)
"""Messages of trouble; whether they decide is the oracle's business."""
