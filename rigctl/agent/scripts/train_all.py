"""Training on every card by itself and on all of them together: `--arguments JSON --out FILE`.

The controller of the processes is torchrun, one process a card. First each card trains alone, all at the same time, and
its first steps are repeated from the same beginning: the losses must be the same bit by bit. Then all train together:
after each step's backward pass the gradients are summed over the cards. That is done twice: as NCCL likes it, and with
`NCCL_P2P_DISABLE=1`, through the host's memory. FILE is written once, at the end:

    {"torch", "device", "model", "ranks", "tflops_per_token_per_s", "alone": [CARD, …], "together": RATE,
     "without_p2p": RATE | null, "weights_agree"}     or     {"error", "hint"}
    CARD: {"slot", "name", "uuid", "tokens_per_s", "step_tokens_per_s", "losses", "repeated_losses"}
    RATE: {"tokens_per_s", "step_tokens_per_s", "measured_mono_s": [begin, end]}

Rates of RATE are those of all cards together: each step counts as long as its slowest card. `weights_agree` says
whether all cards hold the same weights, bit by bit, after they trained together.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from .devices import TORCH_MISSING, ScriptError, open_devices, run, say, told, torch_version, write
from .train import SEED, TRAIN_PASSES, Trainer, TrainError, forward_flops, shape_of
from .work import TERA

if not TORCH_MISSING:
    import torch
    from torch import distributed

MODULE = f"{__package__}.train_all"
"""This program as torchrun starts it."""
BUCKET = 16 * 2**20
"""So many gradients travel at once: 64 MiB."""
TERM_GRACE_S = 5.0
PR_SET_PDEATHSIG = 1


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Let torchrun run the workers, with and without P2P, and put together what they measured."""
    if TORCH_MISSING:
        raise ScriptError(f"torch cannot be imported: {TORCH_MISSING}", "rigctl provision RIG --tags pytorch")
    if int(arguments["ranks"]) < 2:  # noqa: PLR2004 - two cards
        raise ScriptError("one card trains with no other", "see topology.gpu_count")
    first = _launch(arguments, alone=True, environment={})
    second = _launch(arguments, alone=False, environment={"NCCL_P2P_DISABLE": "1"}) if _p2p(arguments) else None
    shape = shape_of(arguments["training"])
    seq_len = int(arguments["training"]["seq_len"])
    return {
        "torch": torch_version(),
        "device": arguments["training"]["device"],
        "model": arguments["training"]["model"],
        "ranks": int(arguments["ranks"]),
        "tflops_per_token_per_s": TRAIN_PASSES * forward_flops(shape, seq_len) / seq_len / TERA,
        "alone": [one["alone"] for one in first],
        "together": together(first),
        "without_p2p": together(second) if second is not None else None,
        "weights_agree": all(one["weights_agree"] for one in [*first, *(second or [])]),
    }


def _p2p(arguments: dict[str, Any]) -> bool:
    return bool(arguments["training"]["device"] == "cuda")


def together(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up what the ranks did: a step lasts as long as on its slowest card."""
    steps = list(zip(*(one["together"]["step_tokens_per_s"] for one in ranks), strict=True))
    rates = [len(ranks) * min(step) for step in steps]
    begun = [one["together"]["measured_mono_s"] for one in ranks]
    return {
        "tokens_per_s": statistics.median(rates),
        "step_tokens_per_s": rates,
        "measured_mono_s": [min(begin for begin, _ in begun), max(end for _, end in begun)],
    }


def _launch(arguments: dict[str, Any], *, alone: bool, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Run one torchrun on this rig alone; what each rank wrote, in the order of ranks."""
    place = ["--nnodes", "1", "--master_addr", "127.0.0.1", "--master_port", str(_free_port())]
    return launch({**arguments, "alone": alone}, place, environment)


def launch(arguments: dict[str, Any], place: list[str], environment: dict[str, str]) -> list[dict[str, Any]]:
    """Run torchrun with its words for `place`; what each rank of this rig wrote, in the order of ranks.

    Raises:
        ScriptError: it did not start, failed or did not end; or a rank says why.
    """
    ranks = int(arguments["ranks"])
    with tempfile.TemporaryDirectory(prefix="rigctl-train-") as folder:
        work = {**arguments, "folder": folder}
        words = [*place, "--nproc_per_node", str(ranks), "-m", MODULE]
        argv = [sys.executable, "-m", "torch.distributed.run", *words, "--worker", json.dumps(work)]
        status = _run(argv, environment, float(arguments["limit_s"]))
        found = [_read(Path(folder) / f"{rank}.json") for rank in range(ranks)]
    if bad := next((one for one in found if one is not None and "error" in one), None):
        raise ScriptError(str(bad["error"]), str(bad["hint"]))
    if status != 0 or any(one is None for one in found):
        what = "did not end in its time" if status is None else f"ended with status {status}"
        raise ScriptError(f"torchrun over {ranks} cards {what}", "see the step's log; is NCCL there (a CUDA build)?")
    return [one for one in found if one is not None]


def _run(argv: list[str], environment: dict[str, str], limit_s: float) -> int | None:
    """Run torchrun; None when it had to be ended. The guard ends the whole session if need be."""
    packages = str(Path(__file__).resolve().parents[MODULE.count(".")])
    own = {"PYTHONPATH": packages, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "OMP_NUM_THREADS": "1", **environment}
    process = subprocess.Popen(argv, env={**os.environ, **own}, stdin=subprocess.DEVNULL)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # torchrun ends its workers
        try:
            process.wait(TERM_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return None


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def work(arguments: dict[str, Any]) -> dict[str, Any]:
    """What one rank measures."""
    rank = int(os.environ["LOCAL_RANK"])
    training = {**arguments["training"], "card": rank}
    ranks = int(arguments["ranks"])
    opened = open_devices({"device": training["device"], "cards": ranks, "threads": training.get("threads")})
    one = opened[min(rank, len(opened) - 1)]
    if one.device.type == "cuda":
        torch.cuda.set_device(one.device)
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    backend = "nccl" if one.device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=timedelta(seconds=float(arguments["limit_s"])))
    try:
        answer: dict[str, Any] = {}
        if arguments["alone"]:
            answer["alone"] = {**one.identity, **_alone(arguments, training)}
            distributed.barrier()
        rates, trainer = _together(arguments, training, int(os.environ["RANK"]))
        return answer | {"together": rates, "weights_agree": _agree(list(trainer.model.weights.values()))}
    finally:
        distributed.destroy_process_group()


def _alone(arguments: dict[str, Any], training: dict[str, Any]) -> dict[str, Any]:
    repeats = int(arguments["repeat_steps"])
    losses, rates, _ = _steps(Trainer(training), arguments)
    again = Trainer(training)
    repeated = [again.step()[0] for _ in range(repeats)]
    return {
        "tokens_per_s": statistics.median(rates),
        "step_tokens_per_s": rates,
        "losses": losses,
        "repeated_losses": repeated,
    }


def _together(arguments: dict[str, Any], training: dict[str, Any], rank: int) -> tuple[dict[str, Any], Trainer]:
    trainer = Trainer(training, data_seed=SEED + 1 + rank, exchange=exchange)
    _, rates, measured = _steps(trainer, arguments)
    return {"step_tokens_per_s": rates, "measured_mono_s": measured}, trainer


def _steps(trainer: Trainer, arguments: dict[str, Any]) -> tuple[list[float], list[float], list[float]]:
    """Train warm-up and measured steps: all losses, the measured rates, and when those were measured."""
    warm_up = int(arguments["warmup_steps"])
    losses, rates, begun = [], [], time.monotonic()
    for number in range(warm_up + int(arguments["measured_steps"])):
        if number == warm_up:
            begun = time.monotonic()
        loss, rate = trainer.step()
        if not math.isfinite(loss):
            raise TrainError(f"the loss became {loss} in step {number + 1}", "look for memory errors: run the GPU burn")
        losses.append(loss)
        if number >= warm_up:
            rates.append(rate)
    return losses, rates, [round(begun, 4), round(time.monotonic(), 4)]


def exchange(weights: list[Any]) -> None:
    """Replace each rank's gradients by their mean over all ranks, some of them at a time."""
    ranks = distributed.get_world_size()
    waiting: list[Any] = []
    for weight in weights:
        waiting.append(weight.grad)
        if sum(gradient.numel() for gradient in waiting) >= BUCKET:
            _mean(waiting, ranks)
            waiting = []
    if waiting:
        _mean(waiting, ranks)


def _mean(gradients: list[Any], ranks: int) -> None:
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    distributed.all_reduce(flat)
    flat /= ranks
    begin = 0
    for gradient in gradients:
        gradient.copy_(flat[begin : begin + gradient.numel()].view_as(gradient))
        begin += gradient.numel()


def _agree(weights: list[Any]) -> bool:
    """Whether all ranks hold the same weights: the bits of each, compared with those of rank 0."""
    same = True
    for weight in weights:
        own = weight.detach()
        first = own.clone()
        distributed.broadcast(first, 0)
        same = same and bool((first.view(torch.int32) == own.view(torch.int32)).all().item())
    flag = torch.tensor([int(same)], device=weights[0].device)
    distributed.all_reduce(flag, op=distributed.ReduceOp.MIN)
    return bool(flag.item())


def die_with_parent() -> None:
    """Have the kernel end this worker when torchrun is gone (prctl(2), PR_SET_PDEATHSIG).

    Newer versions of torchrun start workers in sessions of their own, and who ends the step by its process group would
    not reach them.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise ScriptError(f"prctl failed: {os.strerror(ctypes.get_errno())}", "is this Linux?")
    if os.getppid() == 1:
        raise ScriptError("torchrun is gone", "see train_all.log")


def _measured(arguments: dict[str, Any]) -> dict[str, Any]:
    die_with_parent()
    try:
        return work(arguments)
    except TrainError as error:
        raise ScriptError(str(error), error.hint) from error


def main() -> int:
    """Be one worker of torchrun, or run it."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--worker", type=json.loads)
    asked, _ = parser.parse_known_args()
    if asked.worker is None:
        return run(measure, "Train on every card by itself and on all of them together.")
    answer = told(_measured, asked.worker)
    write(Path(asked.worker["folder"]) / f"{os.environ['LOCAL_RANK']}.json", answer)
    if "error" in answer:
        say(f"error: {answer['error']}")
    return int("error" in answer)


if __name__ == "__main__":
    sys.exit(main())
