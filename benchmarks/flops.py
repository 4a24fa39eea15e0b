"""How right our count of operations is, beside its peers: the relative error of each against counts by formula.

The truths are `tests/flop_truths.py`: 2 × multiply-accumulate, matrix products, convolutions, recurrent cells and
Fourier transforms alone. Peers count other things in other units; each is brought to that convention in its favour, and
the list above the table says how. Peers take the model and its argument, under `no_grad`; ours takes the call as it is
(inference mode, or a training step). Every reading is a process of its own, since peers leave hooks and patches behind;
one that fails is shown as the type of its error.

    python benchmarks/flops.py          exit 1 when a verdict is no
    python benchmarks/flops.py lstm     the truths whose names hold that word
"""

from __future__ import annotations

import io
import logging
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from flop_truths import TRUTHS, Truth, first_tensor

LIMIT = 0.001
TIMEOUT_S = 120

Reader = Callable[[Truth], float]
Forward = Callable[[nn.Module, torch.Tensor], float]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A counter: what it installs as, how it is brought to 2 × MAC, and its readings of the two passes."""

    name: str
    package: str
    requirement: str
    convention: str
    forward: Reader
    backward: Reader | None = None

    def absent(self) -> str | None:
        """How to get it where it is missing; None where it is here."""
        try:
            found = find_spec(self.package)
        except ModuleNotFoundError:  # not even its parent package
            found = None
        return None if found else f"not installed: pip install '{self.requirement}'"


def of_module(read: Forward) -> Reader:
    """Read a truth's model and argument without gradients."""

    def reader(truth: Truth) -> float:
        model, argument = truth.parts("cpu")
        with torch.no_grad():
            return read(model, argument)

    return reader


def stock_forward(model: nn.Module, argument: torch.Tensor) -> float:
    """torch's own counter; in inference mode it raises on every model with weight normalisation."""
    with FlopCounterMode(display=False) as counter:
        model(argument)
    return counter.get_total_flops()


def stock_backward(truth: Truth) -> float:
    """torch's own counter over both passes, minus what it held after the first."""
    model, argument = truth.parts("cpu")
    with FlopCounterMode(display=False) as counter:
        loss = first_tensor(model(argument)).sum()
        forward = counter.get_total_flops()
        loss.backward()
    return counter.get_total_flops() - forward


PRODUCTS = {"addmm", "bmm", "conv", "einsum", "matmul", "mm", "linear"}


def fvcore_forward(model: nn.Module, argument: torch.Tensor) -> float:
    """Its operators that are products; norms and pooling are left out."""
    from fvcore.nn import FlopCountAnalysis

    counts = FlopCountAnalysis(model, argument).by_operator()
    return 2 * sum(count for name, count in counts.items() if name in PRODUCTS)


def calflops_forward(model: nn.Module, argument: torch.Tensor) -> float:
    """Twice its MACs; recurrent layers have none there, and "FLOPs" at two a MAC."""
    from calflops import calculate_flops

    flops, macs, _ = calculate_flops(model, args=[argument], print_results=False, output_as_string=False)
    return 2 * macs or flops


def calflops_backward(truth: Truth) -> float:
    """It takes the backward pass for 2 × the forward one, whatever the model."""
    return 2 * of_module(calflops_forward)(truth)


def ptflops_forward(backend: str) -> Forward:
    """Twice its MACs; the back-end `pytorch` gives those of one item of the batch."""

    def read(model: nn.Module, argument: torch.Tensor) -> float:
        from ptflops import get_model_complexity_info

        macs, _ = get_model_complexity_info(
            model,
            tuple(argument.shape),
            input_constructor=lambda shape: argument,
            as_strings=False,
            print_per_layer_stat=False,
            backend=backend,
        )
        if macs is None:  # it prints the error and goes on
            raise RuntimeError("ptflops gave no count")
        return 2 * macs * (len(argument) if backend == "pytorch" else 1)

    return read


def thop_forward(model: nn.Module, argument: torch.Tensor) -> float:
    """Twice its MACs."""
    from thop import profile

    macs, _ = profile(model, inputs=(argument,), verbose=False)
    return 2 * macs


def torchinfo_forward(model: nn.Module, argument: torch.Tensor) -> float:
    """Twice its multiply-adds."""
    from torchinfo import summary

    return 2 * summary(model, input_data=[argument], verbose=0).total_mult_adds


def our_forward(truth: Truth) -> float:
    """Our count of the call's forward pass."""
    from speechmeter.meters.flops.count import count

    return count(truth.build("cpu")).forward


def our_backward(truth: Truth) -> float:
    """Our count of the call's backward pass."""
    from speechmeter.meters.flops.count import count

    return count(truth.build("cpu")).backward


PEERS = [
    Peer(
        name="torch stock",
        package="torch",
        requirement="torch>=2.6",
        convention="as it is: 2 × MAC of products alone",
        forward=of_module(stock_forward),
        backward=stock_backward,
    ),
    Peer(
        name="fvcore",
        package="fvcore",
        requirement="fvcore>=0.1.5.post20221221",
        convention="× 2: it counts a MAC as one; its norms and pooling left out",
        forward=of_module(fvcore_forward),
    ),
    Peer(
        name="calflops",
        package="calflops",
        requirement="calflops>=0.3.2",
        convention="its MACs × 2; for recurrent layers, which have none, its FLOPs; backward: its factor of 2",
        forward=of_module(calflops_forward),
        backward=calflops_backward,
    ),
    Peer(
        name="ptflops",
        package="ptflops",
        requirement="ptflops>=0.7.5",
        convention="its MACs × 2 × batch; biases, norms, activations cannot be told apart in them (default back-end)",
        forward=of_module(ptflops_forward("pytorch")),
    ),
    Peer(
        name="ptflops aten",
        package="ptflops",
        requirement="ptflops>=0.7.5",
        convention="its MACs × 2; biases cannot be told apart in them (back-end aten)",
        forward=of_module(ptflops_forward("aten")),
    ),
    Peer(
        name="thop",
        package="thop",
        requirement="thop>=0.1.1.post2209072238",
        convention="its MACs × 2; norms cannot be told apart in them",
        forward=of_module(thop_forward),
    ),
    Peer(
        name="torchinfo",
        package="torchinfo",
        requirement="torchinfo>=1.8.0",
        convention="its multiply-adds × 2; biases and norms cannot be told apart in them",
        forward=of_module(torchinfo_forward),
    ),
    Peer(
        name="ours",
        package="speechmeter.meters.flops.count",
        requirement="speechmeter[torch]",
        convention="as it is",
        forward=our_forward,
        backward=our_backward,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One pass of one truth, and its cost by formula."""

    truth: Truth
    backward: bool
    flops: float

    @property
    def name(self) -> str:
        return self.truth.name.replace("training", "backward") if self.backward else self.truth.name

    def reader(self, peer: Peer) -> Reader | None:
        return peer.backward if self.backward else peer.forward


def rows(word: str) -> list[Row]:
    """The forward pass of every truth that has no other, then the backward pass of every truth that has one."""
    chosen = [truth for truth in TRUTHS if word.lower() in truth.name.lower() and "cpu" in truth.devices]
    forward = [Row(truth=truth, backward=False, flops=truth.forward) for truth in chosen if truth.backward is None]
    backward = [Row(truth=truth, backward=True, flops=truth.backward) for truth in chosen if truth.backward is not None]
    return forward + backward


Reading = float | str  # a relative error, or why there is none


def take(row: Row, peer: Peer) -> Reading:
    """A peer's relative error in a process of its own; without one a dash, or the type of what it raised."""
    if row.reader(peer) is None or peer.absent():
        return "—"
    with multiprocessing.get_context("fork").Pool(1, initializer=hush) as pool:
        try:
            found = pool.apply_async(attempt, (PEERS.index(peer), TRUTHS.index(row.truth), row.backward)).get(TIMEOUT_S)
        except multiprocessing.TimeoutError:
            return "timeout"
    return found if isinstance(found, str) else found / row.flops - 1


def hush() -> None:
    """Send what peers print nowhere."""
    warnings.simplefilter("ignore")
    logging.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stdout = sys.stderr = io.StringIO()


def attempt(peer: int, truth: int, backward: bool) -> Reading:
    """The count of a peer, or why there is none; by their numbers, since functions do not travel."""
    chosen = PEERS[peer]
    reader = chosen.backward if backward else chosen.forward
    try:
        return float(reader(TRUTHS[truth]))  # type: ignore[misc]
    except Exception as error:
        return type(error).__name__


def show(readings: Sequence[Reading]) -> str:
    """The cells of a line: percentages, or words."""
    return "".join(f"{reading if isinstance(reading, str) else f'{reading:+.2%}':>16}" for reading in readings)


def compare(word: str) -> bool:
    """Print the table; whether our count is within the limit of every truth."""
    print("Operations against counts by formula. Brought to 2 × MAC:")
    for peer in PEERS:
        print(f"  {peer.name:14}{peer.absent() or peer.convention}")
    print(f"\n{'':60}{'truth, G':>10}{show([peer.name for peer in PEERS])}")
    ours: list[Reading] = []
    for row in rows(word):
        readings = [take(row, peer) for peer in PEERS]
        ours.append(readings[-1])
        print(f"{row.name:60}{row.flops / 1e9:10.4f}{show(readings)}", flush=True)
    return verdict(
        f"ours within {LIMIT:.1%} of every truth",
        bool(ours) and all(not isinstance(error, str) and abs(error) <= LIMIT for error in ours),
    )


def verdict(claim: str, holds: bool) -> bool:
    """Print a claim and whether it holds, and pass that on."""
    print(f"{claim}: {'yes' if holds else 'no'}")
    return holds


def main() -> int:
    """Compare; 0 when the verdict is yes."""
    return 0 if compare(" ".join(sys.argv[1:])) else 1


if __name__ == "__main__":
    sys.exit(main())
