"""Figures as text: the same digits in every format."""

from __future__ import annotations

from typing import Any

from speechmeter.analysis.conditions import RATIO
from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.frontier import Size
from speechmeter.analysis.growth import DRAWN, EXTRAPOLATED, INTERPOLATED, BatchSize, Slope
from speechmeter.analysis.intervals import Correlation, Quantity
from speechmeter.analysis.scores import KINDS
from speechmeter.core.quality import IMPORTED
from speechmeter.core.stated import STATED

BYTES = "bytes"
"""The unit of sizes."""
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_WIDEST_PERCENT = 999
_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_COUNTED = {"flop": "FLOP", "flop/s": "FLOP/s", "op": "op"}
_SAID = (IMPORTED, EXTRAPOLATED, INTERPOLATED)
_BOTH_ENDS = (*KINDS, "difference", DRAWN, RATIO, STATED, *_SAID)
"""Statistics whose interval is shown with both its ends; the last of them are also printed as a word behind it."""
_SCALED = ("s", "bytes", "bytes/s", *_COUNTED)
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def number(value: float, unit: str, *, sci: bool = False, scale: str = "") -> str:
    """Three significant digits with the unit: `0.123`, `34.1 MiB`, `201 ms`; `1.23E-01` with `sci`.

    Sizes are in the unit that fits them, or in `scale`: `0.195 MiB`.
    """
    if sci:
        return f"{value:.2E}" + (f" {unit}" if unit != "1" else "")
    if unit == BYTES:
        return _scaled(value, tuple(step for step in _BYTES if scale in ("", step[1])))
    if unit == "bytes/s":
        return _scaled(value, _BYTES) + "/s"
    if unit == "s":
        return _scaled(value, _SECONDS) if value else "0 s"
    if unit in _COUNTED:
        return _scaled(value, tuple((factor, prefix + _COUNTED[unit]) for factor, prefix in _DECIMAL))
    text = f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 1000 else _three(value)
    return text if unit == "1" else f"{text} {unit}"


def bytes_unit(value: float) -> str:
    """The unit that a size is printed in: `MiB`."""
    return number(value, BYTES).rpartition(" ")[2]


def figure(estimate: Quantity, *, sci: bool = False, scale: str = "") -> str:
    """An estimate with its relative interval: `0.123 ±4%`, and how many rounds failed beside those behind it.

    Sizes are in the unit that fits them, or in `scale`.
    """
    failed = ""
    if isinstance(estimate, Estimate) and estimate.failed:
        failed = f" ({estimate.failed} of {estimate.tried} rounds failed)"
    return f"{_figure(estimate, sci, scale)}{failed}"


def _figure(estimate: Quantity, sci: bool, scale: str) -> str:
    if isinstance(estimate, Correlation):
        return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}] (n={estimate.samples_per_round})"
    if isinstance(estimate, Slope | BatchSize):
        form = ".2f" if isinstance(estimate, Slope) else "g"
        ends = "" if estimate.low is None else f" [{estimate.low:{form}}, {estimate.high:{form}}]"
        return f"{estimate.value:{form}}{ends}"
    if isinstance(estimate, Size):
        return f"{'≥ ' if estimate.at_least else ''}{estimate.value:,.10g}"
    if estimate.statistic in _BOTH_ENDS:
        return _score(estimate, sci)
    if isinstance(estimate, Estimate) and estimate.is_resampled:
        return _of_conversations(estimate, sci)
    text = number(estimate.value, estimate.metric.unit, sci=sci, scale=scale)
    if estimate.statistic == "mean-sd" and estimate.high is not None:
        return f"{text} ± {number(estimate.high - estimate.value, estimate.metric.unit, sci=sci, scale=scale)}"
    return text if estimate.half_width is None else f"{text} ±{_percent(estimate.half_width)}"


def signed(value: float, unit: str) -> str:
    """A difference with its sign: `+150 ms`."""
    return ("+" if value > 0 else "") + number(value, unit)


def _score(estimate: Quantity, sci: bool) -> str:
    """A score with both ends of its interval: `5.32 % [4.10, 6.70]`; differences with their sign."""
    signed = estimate.statistic == "difference"

    def text(value: float, unit: str = "1") -> str:
        return ("+" if signed and value > 0 else "") + number(value, unit, sci=sci)

    unit = estimate.metric.unit if estimate.metric.unit in _SCALED else "1"  # one that may change between the ends
    ends = [text(end, unit) for end in (estimate.low, estimate.high) if end is not None]
    bounds = f" [{', '.join(ends)}]" if ends else ""
    said = f" {estimate.statistic}" if estimate.statistic in _SAID else ""
    return text(estimate.value, estimate.metric.unit) + bounds + said


def _of_conversations(found: Estimate, sci: bool) -> str:
    """A percentile or a ratio with both ends of its interval in its own unit: `641 ms [600, 702]`, `> 30 s`."""
    unit = found.metric.unit
    text = _with_limit(found.value, found, sci)
    if found.low is None or found.high is None:
        return text
    name = text.rpartition(" ")[2]
    scale = next((factor for factor, word in _SECONDS if word == name), None) if unit == "s" and not sci else None
    ends = []
    for end in (found.low, found.high):
        beyond = found.beyond_s is not None and end >= found.beyond_s
        if beyond or scale is None:
            ends.append(_with_limit(end, found, sci) if beyond or unit == "s" else number(end, "1", sci=sci))
        else:
            ends.append(_three(end / scale))
    return f"{text} [{', '.join(ends)}]"


def _with_limit(value: float, found: Estimate, sci: bool) -> str:
    """The number, or the timeout that it is beyond."""
    if found.beyond_s is not None and value >= found.beyond_s:
        return f"> {found.beyond_s:g} {found.metric.unit}"
    return number(value, found.metric.unit, sci=sci)


def _percent(share: float) -> str:
    if share * 100 > _WIDEST_PERCENT:
        return f">{_WIDEST_PERCENT}%"
    return f"{share:.0%}" if share >= 0.01 or share == 0 else f"{share:.1%}"


def counted(count: Any, word: str) -> str:
    """`1 round`, `3 rounds`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    rounded = max(abs(value), abs(float(f"{value:.3g}")))
    for factor, name in steps:
        if rounded >= factor:
            return f"{_three(value / factor)} {name}"
    return f"0 {steps[-1][1]}" if value == 0 else f"{_three(value / steps[-1][0])} {steps[-1][1]}"


def _three(value: float) -> str:
    """Three significant digits without an exponent where that stays short."""
    if value == 0:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    if abs(value) < 1e-4:
        return f"{value:.2e}"
    digits = f"{value:#.3g}"
    return digits.removesuffix(".")
