"""What each card computes and moves by itself: `--arguments JSON --out FILE`, run by the rig's torch Python.

One card after another, so that none waits for another's power, lanes or host memory. FILE is written once, at the end:

    {"torch", "device", "cards": [{"slot", "name", "uuid", "figures": {NAME: {"rate", "blocks", "settled",
     "warm_up_s"}}}]}     or     {"error", "hint"}

Figures: `matmul_fp32`, `matmul_fp16`, `matmul_bf16`, `layer` in TFLOP/s; `gpu_memory`, `host_to_device`,
`device_to_host` in GB/s (10^9 bytes a second). Products are square; fp32 uses TF32 where the card has it, as published
fp32 figures do. The memory's rate is a vector times a number, read and written. Copies use pinned memory of the host.
The layer is a Transformer layer in fp16, forwards and backwards; attention is written out, so that the work is the
same in every version of torch.
"""

from __future__ import annotations

import contextlib
import math
import sys
from typing import TYPE_CHECKING, Any

from .devices import TORCH_MISSING, open_devices, run, say, torch_version
from .pacing import Pace, paced
from .work import GIGA, TERA, copied_bytes, layer_flops, matmul_flops, streamed_bytes

if not TORCH_MISSING:
    import torch
    from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .devices import Opened

FLOAT_BYTES = 4
DROPOUT = 0.1


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Measure every figure on every device that the arguments name."""
    devices, pace = open_devices(arguments), Pace.of(arguments)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    cards = []
    for one in devices:
        figures = {}
        for name, (prepare, unit) in FIGURES.items():
            with _room(one):
                work, amount = prepare(one, arguments)
                figures[name] = paced(work, one.finish, pace, amount)
                del work
            say(f"slot {one.slot} {name} {figures[name]['rate']:.4g} {unit} settled={figures[name]['settled']}")
        cards.append({**one.identity, "figures": figures})
    return {"torch": torch_version(), "device": arguments["device"], "cards": cards}


@contextlib.contextmanager
def _room(one: Opened) -> Iterator[None]:
    """Give memory back after each figure, so that the next one begins on an empty card."""
    yield
    if one.device.type == "cuda":
        torch.cuda.empty_cache()


def _matmul(dtype: str) -> Callable[[Opened, dict[str, Any]], tuple[Callable[[], None], float]]:
    def prepare(one: Opened, arguments: dict[str, Any]) -> tuple[Callable[[], None], float]:
        n, kind = int(arguments["matmul_n"]), getattr(torch, dtype)
        left, right = (torch.randn(n, n, device=one.device).to(kind) for _ in range(2))
        product = torch.empty_like(left)
        return lambda: torch.mm(left, right, out=product), matmul_flops(n) / TERA

    return prepare


def _gpu_memory(one: Opened, arguments: dict[str, Any]) -> tuple[Callable[[], None], float]:
    elements = int(arguments["stream_mib"]) * 2**20 // FLOAT_BYTES
    source = torch.rand(elements, device=one.device)
    target = torch.empty_like(source)
    return lambda: torch.mul(source, 1.2, out=target), streamed_bytes(elements, FLOAT_BYTES) / GIGA


def _host_copy(*, to_device: bool) -> Callable[[Opened, dict[str, Any]], tuple[Callable[[], None], float]]:
    def prepare(one: Opened, arguments: dict[str, Any]) -> tuple[Callable[[], None], float]:
        elements = int(arguments["stream_mib"]) * 2**20 // FLOAT_BYTES
        host = torch.rand(elements, pin_memory=one.device.type == "cuda")
        device = torch.empty(elements, device=one.device)
        source, target = (host, device) if to_device else (device, host)
        return lambda: target.copy_(source, non_blocking=True), copied_bytes(elements, FLOAT_BYTES) / GIGA

    return prepare


def _layer(one: Opened, arguments: dict[str, Any]) -> tuple[Callable[[], None], float]:
    shape = {key: int(arguments[f"layer_{key}"]) for key in ("batch", "seq_len", "hidden", "heads")}
    layer = Layer(shape["hidden"], shape["heads"], one.device)
    x = torch.randn(shape["batch"], shape["seq_len"], shape["hidden"], device=one.device, dtype=torch.float16)
    gradient = torch.randn_like(x)
    x.requires_grad_()

    def work() -> None:
        layer(x).backward(gradient)
        for weight in (x, *layer.weights.values()):
            weight.grad = None

    return work, 3 * layer_flops(shape["batch"], shape["seq_len"], shape["hidden"]) / TERA


class Layer:
    """One layer as in BERT: attention and feed-forward, each with dropout, what came in, and a norm behind it."""

    def __init__(self, hidden: int, heads: int, device: Any) -> None:
        self.hidden, self.heads = hidden, heads
        self.weights: dict[str, Any] = {}
        sizes = {"qkv": (3 * hidden, hidden), "out": (hidden, hidden)}
        sizes |= {"up": (4 * hidden, hidden), "down": (hidden, 4 * hidden)}
        for name, size in sizes.items():
            self._make(f"{name}.weight", torch.randn(size, device=device) * 0.02)
            self._make(f"{name}.bias", torch.zeros(size[0], device=device))
        for name in ("norm1", "norm2"):
            self._make(f"{name}.weight", torch.ones(hidden, device=device))
            self._make(f"{name}.bias", torch.zeros(hidden, device=device))

    def _make(self, name: str, value: Any) -> None:
        self.weights[name] = value.to(torch.float16).requires_grad_()

    def _linear(self, name: str, x: Any) -> Any:
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, name: str, x: Any) -> Any:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x, (self.hidden,), weight, bias)

    def __call__(self, x: Any) -> Any:
        """Return the layer of `x`, sequences × tokens × hidden."""
        batch, seq_len, hidden = x.shape
        qkv = self._linear("qkv", x).view(batch, seq_len, 3, self.heads, hidden // self.heads)
        query, key, value = (qkv[:, :, part].transpose(1, 2) for part in range(3))
        scores = query @ key.transpose(-2, -1) / math.sqrt(hidden // self.heads)
        mixed = functional.dropout(torch.softmax(scores, dim=-1), DROPOUT) @ value
        mixed = self._linear("out", mixed.transpose(1, 2).reshape(batch, seq_len, hidden))
        x = self._norm("norm1", x + functional.dropout(mixed, DROPOUT))
        inner = self._linear("down", functional.gelu(self._linear("up", x)))
        return self._norm("norm2", x + functional.dropout(inner, DROPOUT))


FIGURES: dict[str, tuple[Callable[[Opened, dict[str, Any]], tuple[Callable[[], None], float]], str]] = {
    "matmul_fp32": (_matmul("float32"), "TFLOP/s"),
    "matmul_fp16": (_matmul("float16"), "TFLOP/s"),
    "matmul_bf16": (_matmul("bfloat16"), "TFLOP/s"),
    "gpu_memory": (_gpu_memory, "GB/s"),
    "host_to_device": (_host_copy(to_device=True), "GB/s"),
    "device_to_host": (_host_copy(to_device=False), "GB/s"),
    "layer": (_layer, "TFLOP/s"),
}
"""What is measured, in this order: how it is prepared (one piece of work, and its amount), and its unit."""


if __name__ == "__main__":
    sys.exit(run(measure, "Measure what each card computes and moves by itself."))
