"""The training workload: `python train.py --training JSON --out FILE`, run by the rig's own torch Python.

A GPT with tied embeddings, AdamW, autocast to bf16 or plain fp32, on made-up token sequences from a fixed seed. It
prints one line per step and writes FILE once, at the end, atomically:

    {"device", "device_name", "device_uuid", "torch", "model", "params", "tokens_per_s", "step_tokens_per_s",
     "tflops", "loss_first", "loss_last", "peak_memory_mib"}     or     {"error", "hint"}

`tokens_per_s` is the median of the measured steps; a step is `grad_accum` micro-batches and one optimiser step, timed
after the device has finished it. The named device is used or none at all. Attention is written out instead of calling
the fused kernel, which torch 1.13 (driver 515) does not have: so the work is the same in every version of torch.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Cards counted in PCI bus order, as slots are; must be set before CUDA starts.
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")

TORCH_MISSING = ""
try:
    import torch
    from torch.nn import functional
except (ImportError, OSError) as broken:  # OSError: a shared library of the wheel that does not load
    TORCH_MISSING = str(broken)

SEED = 20220722
USED_TOKENS = 256
"""The made-up text uses this many different tokens, so that a loss that falls shows learning."""
STRIDES = (1, 3, 7)
TRAIN_PASSES = 3
"""Forward and backward together cost three forward passes."""
TERA = 1e12


class TrainError(Exception):
    """Training could not be measured; carries the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Shape:
    """The figures of one GPT."""

    layers: int
    hidden: int
    heads: int
    vocab: int
    dropout: float


SHAPES = {
    # GPT-2 medium as Hugging Face trains it by default: 24 × 1024 × 16, dropout 0.1.
    "gpt2_medium": Shape(layers=24, hidden=1024, heads=16, vocab=50257, dropout=0.1),
    # About 3.45 M parameters at a sequence of 128: some thousand tokens/s on one CPU thread.
    "gpt_tiny": Shape(layers=3, hidden=256, heads=8, vocab=4096, dropout=0.0),
}


def forward_flops(shape: Shape, seq_len: int) -> float:
    """Floating point operations of one forward pass over one sequence (matrix products only).

    Per layer: attention 4·h·s² + 8·s·h², feed-forward 16·s·h²; the head 2·s·h·v.
    """
    per_layer = 4 * shape.hidden * seq_len**2 + 24 * seq_len * shape.hidden**2
    return float(shape.layers * per_layer + 2 * seq_len * shape.hidden * shape.vocab)


def tflops(shape: Shape, seq_len: int, tokens_per_s: float) -> float:
    """TFLOP/s of training at `tokens_per_s`."""
    return TRAIN_PASSES * forward_flops(shape, seq_len) * tokens_per_s / seq_len / TERA


def shape_of(training: dict[str, Any]) -> Shape:
    """The model that the workload names."""
    if training["model"] not in SHAPES:
        raise TrainError(f"unknown model {training['model']!r}", f"models: {', '.join(SHAPES)}")
    return SHAPES[training["model"]]


def device_of(training: dict[str, Any]) -> Any:
    """The torch device that the workload names; TrainError when it is not there."""
    if TORCH_MISSING:
        raise TrainError(
            f"torch cannot be imported: {TORCH_MISSING}",
            "run `rigctl provision` with the pytorch role for this rig",
        )
    wanted = training["device"]
    if wanted == "cpu":
        if training.get("threads"):
            torch.set_num_threads(int(training["threads"]))
        return torch.device("cpu")
    if wanted != "cuda":
        raise TrainError(f"unknown training device {wanted!r}", "set training.device to cuda or cpu in the spec")
    if not torch.cuda.is_available():
        raise TrainError(
            f"the workload asks for device cuda, and torch {torch.__version__} sees none",
            "check the driver (nvidia-smi) and that pytorch_build is a CUDA build that this driver can run",
        )
    if training["dtype"] == "bf16" and not torch.cuda.is_bf16_supported():
        raise TrainError("this card does not compute in bf16", "set training.dtype to fp32 in the spec")
    return torch.device("cuda", int(training.get("card", 0)))


class Gpt:
    """A GPT as plain tensors: weights by name, and the loss of a batch."""

    def __init__(self, shape: Shape, seq_len: int, device: Any) -> None:
        self.shape = shape
        self.weights: dict[str, Any] = {}
        deviation = 0.02
        self._make("tokens", (shape.vocab, shape.hidden), deviation, device)
        self._make("positions", (seq_len, shape.hidden), deviation, device)
        # As in GPT-2: what adds to the residual stream starts smaller the deeper the network is.
        residual = deviation / math.sqrt(2 * shape.layers)
        for layer in range(shape.layers):
            self._linear(f"{layer}.qkv", shape.hidden, 3 * shape.hidden, deviation, device)
            self._linear(f"{layer}.out", shape.hidden, shape.hidden, residual, device)
            self._linear(f"{layer}.up", shape.hidden, 4 * shape.hidden, deviation, device)
            self._linear(f"{layer}.down", 4 * shape.hidden, shape.hidden, residual, device)
            self._norm(f"{layer}.norm1", device)
            self._norm(f"{layer}.norm2", device)
        self._norm("norm", device)
        ones = torch.ones(seq_len, seq_len, dtype=torch.bool, device=device)
        self._future = torch.triu(ones, diagonal=1)

    def _make(self, name: str, size: tuple[int, ...], deviation: float, device: Any) -> None:
        # Drawn on the CPU, so that every device starts from the same weights.
        self.weights[name] = (torch.randn(size) * deviation).to(device).requires_grad_()

    def _linear(self, name: str, inputs: int, outputs: int, deviation: float, device: Any) -> None:
        self._make(f"{name}.weight", (outputs, inputs), deviation, device)
        self.weights[f"{name}.bias"] = torch.zeros(outputs, device=device, requires_grad=True)

    def _norm(self, name: str, device: Any) -> None:
        self.weights[f"{name}.weight"] = torch.ones(self.shape.hidden, device=device, requires_grad=True)
        self.weights[f"{name}.bias"] = torch.zeros(self.shape.hidden, device=device, requires_grad=True)

    def _apply_linear(self, name: str, x: Any) -> Any:
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _apply_norm(self, name: str, x: Any) -> Any:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x, (self.shape.hidden,), weight, bias)

    def _drop(self, x: Any) -> Any:
        return functional.dropout(x, self.shape.dropout) if self.shape.dropout else x

    def _attention(self, layer: int, x: Any) -> Any:
        batch, seq_len, hidden = x.shape
        heads = self.shape.heads
        qkv = self._apply_linear(f"{layer}.qkv", x).view(batch, seq_len, 3, heads, hidden // heads)
        query, key, value = (qkv[:, :, part].transpose(1, 2) for part in range(3))
        scores = query @ key.transpose(-2, -1) / math.sqrt(hidden // heads)
        scores = scores.masked_fill(self._future[:seq_len, :seq_len], float("-inf"))
        mixed = self._drop(torch.softmax(scores, dim=-1)) @ value
        return self._apply_linear(f"{layer}.out", mixed.transpose(1, 2).reshape(batch, seq_len, hidden))

    def loss(self, batch: Any) -> Any:
        """Mean cross-entropy of each token given those before it."""
        inputs, wanted = batch[:, :-1], batch[:, 1:]
        x = functional.embedding(inputs, self.weights["tokens"]) + self.weights["positions"][: inputs.shape[1]]
        x = self._drop(x)
        for layer in range(self.shape.layers):
            x = x + self._drop(self._attention(layer, self._apply_norm(f"{layer}.norm1", x)))
            inner = functional.gelu(
                self._apply_linear(f"{layer}.up", self._apply_norm(f"{layer}.norm2", x)), approximate="tanh"
            )
            x = x + self._drop(self._apply_linear(f"{layer}.down", inner))
        logits = functional.linear(self._apply_norm("norm", x), self.weights["tokens"])
        return functional.cross_entropy(logits.float().reshape(-1, self.shape.vocab), wanted.reshape(-1))


def make_batch(generator: Any, sequences: int, seq_len: int, device: Any) -> Any:
    """Sequences that count upwards by one of a few strides: learnable, and the same in each run."""
    start = torch.randint(0, USED_TOKENS, (sequences, 1), generator=generator)
    stride = torch.tensor(STRIDES)[torch.randint(0, len(STRIDES), (sequences, 1), generator=generator)]
    return ((start + stride * torch.arange(seq_len + 1)) % USED_TOKENS).to(device)


class Trainer:
    """Model, optimiser and data of one workload; `step()` trains one step and times it."""

    def __init__(
        self, training: dict[str, Any], *, data_seed: int = SEED, exchange: Callable[[list[Any]], None] | None = None
    ) -> None:
        """`exchange` is given all weights when their gradients are there, before the optimiser's step."""
        self.device = device_of(training)
        self._exchange = exchange
        self.training = training
        self.shape = shape_of(training)
        torch.manual_seed(SEED)
        # TF32 for fp32 products on a card, as the published fp32 figures were measured.
        torch.set_float32_matmul_precision("high")
        self.model = Gpt(self.shape, training["seq_len"], self.device)
        self.optimizer = torch.optim.AdamW(self.model.weights.values(), lr=3e-4)
        self.generator = torch.Generator().manual_seed(data_seed)

    def _finish_device(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _train(self) -> float:
        accumulate = self.training["grad_accum"]
        total = torch.zeros((), device=self.device)
        for _ in range(accumulate):
            batch = make_batch(self.generator, self.training["micro_batch"], self.training["seq_len"], self.device)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.training["dtype"] == "bf16"):
                loss = self.model.loss(batch) / accumulate
            loss.backward()
            total += loss.detach()
        if self._exchange is not None:
            self._exchange(list(self.model.weights.values()))
        torch.nn.utils.clip_grad_norm_(self.model.weights.values(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._finish_device()
        return float(total)

    def step(self) -> tuple[float, float]:
        """Train one step: loss before it, and tokens/s."""
        self._finish_device()
        began = time.perf_counter()
        loss = self._train()
        seconds = time.perf_counter() - began
        tokens = self.training["micro_batch"] * self.training["grad_accum"] * self.training["seq_len"]
        return loss, tokens / seconds

    def identity(self) -> dict[str, Any]:
        """What was trained, on what."""
        described: dict[str, Any] = {
            "device": self.device.type,
            "device_name": cpu_name(),
            "device_uuid": None,
            "torch": torch.__version__,
            "model": self.training["model"],
            "params": sum(weight.numel() for weight in self.model.weights.values()),
        }
        if self.device.type == "cuda":
            card = torch.cuda.get_device_properties(self.device)
            uuid = getattr(card, "uuid", None)  # torch 2.3 and later
            described["device_name"] = card.name
            described["device_uuid"] = f"GPU-{uuid}" if uuid else None
        return described

    def peak_memory_mib(self) -> float | None:
        """Most memory that torch held on the card, MiB; None on the CPU."""
        if self.device.type != "cuda":
            return None
        return float(torch.cuda.max_memory_allocated(self.device)) / 2**20


def cpu_name() -> str:
    """The processor's name as Linux says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def measure(training: dict[str, Any]) -> dict[str, Any]:
    """Run the workload; what goes into train.json."""
    trainer = Trainer(training)
    losses: list[float] = []
    rates: list[float] = []
    steps = training["warmup_steps"] + training["measured_steps"]
    for number in range(1, steps + 1):
        loss, tokens_per_s = trainer.step()
        if not math.isfinite(loss):
            raise TrainError(f"the loss became {loss} in step {number}", "look for memory errors: run the GPU burn")
        losses.append(loss)
        if number > training["warmup_steps"]:
            rates.append(tokens_per_s)
        kind = "measured" if number > training["warmup_steps"] else "warm-up"
        print(f"step {number}/{steps} {kind} {tokens_per_s:.1f} tokens/s loss {loss:.4f}", flush=True)  # noqa: T201
    median = statistics.median(rates)
    return trainer.identity() | {
        "tokens_per_s": median,
        "step_tokens_per_s": rates,
        "tflops": tflops(trainer.shape, training["seq_len"], median),
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "peak_memory_mib": trainer.peak_memory_mib(),
    }


def measured_or_error(training: dict[str, Any]) -> dict[str, Any]:
    """What `measure` says, or the error with its remedy in the same form."""
    try:
        return measure(training)
    except TrainError as error:
        return {"error": str(error), "hint": error.hint}
    except KeyError as error:
        return {"error": f"the workload has no {error}", "hint": "see `training` in the spec of the rig class"}
    except RuntimeError as error:  # torch: out of memory, a kernel that this card cannot run, a card that is gone
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return {"error": f"torch: {lines[0]}", "hint": "see train.log; a smaller micro_batch needs less memory"}


def main() -> int:
    """Parse, measure, write; exit status 0, or 1 with an error in FILE."""
    parser = argparse.ArgumentParser(description="Train a GPT for a few steps and write what was measured.")
    parser.add_argument("--training", type=json.loads, required=True, help="the workload as JSON")
    parser.add_argument("--out", type=Path, required=True, help="where to write what was measured")
    asked = parser.parse_args()
    found = measured_or_error(asked.training)
    unfinished = asked.out.with_name(asked.out.name + ".part")
    unfinished.write_text(json.dumps(found) + "\n", encoding="utf-8")
    unfinished.replace(asked.out)
    if "error" in found:
        print(f"error: {found['error']}\nhint: {found['hint']}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
