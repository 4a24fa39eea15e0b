"""Profiled rounds of a disturbed machine: random times of modules, operators and kinds of work, call by call."""

from __future__ import annotations

import random
from dataclasses import replace

from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Record

MODULES = {
    "net": "Net",
    "net.front": "Linear",
    "net.blocks.0": "Block",
    "net.blocks.0.att": "Linear",
    "net.blocks.1": "Block",
    "net.blocks.1.att": "Linear",
    "net.rare": "Linear",
}
LABELS = {"label:mask": ("net.blocks.0", "net"), "label:outside": ()}
ROWS = {"attention": "net.blocks.*.att", "rest": ["net", "label:outside"]}
CALLS = 4


def noisy_rounds(count: int = 5, seed: int = 1, device: str = "cuda") -> list[Record]:
    """Rounds in which every value is drawn anew, one in ten of them ten times too large, and some rows are missing."""
    draw = random.Random(seed)
    case = make_case("noisy", device=device, meters=("latency", "modules", "operators", "split"))
    case = replace(case, subject=replace(case.subject, options={"rows": ROWS}))
    return [make_record(case, *_round(draw, number), round=number, sequence=number) for number in range(count)]


def _round(draw: random.Random, number: int) -> list[Measurement]:
    missing = {"module:net.rare", "label:mask"} if number % 2 else set()
    found = [m for metric in (metrics.TIME_MODULE, metrics.TIME_GPU) for m in _modules(draw, metric, missing)]
    return [*found, *_operators(draw, with_rare=not number % 2), *_split(draw), *_stages(draw)]


def _times(draw: random.Random) -> list[float]:
    return [round(draw.lognormvariate(-6, 1) * (10 if draw.random() < 0.1 else 1), 9) for _ in range(CALLS)]


def _summed(apart: dict[str, list[float]]) -> list[float]:
    return [sum(values) for values in zip(*apart.values(), strict=True)]


def _apart(draw: random.Random, *ways: str) -> dict[str, list[float]]:
    return {way: _times(draw) for way in ways}


def _modules(draw: random.Random, metric: metrics.Metric, missing: set[str]) -> list[Measurement]:
    rows = [Measurement.of(metric, [9.0] * CALLS, source="another pass")]  # a total of other calls, as old records have
    for path, kind in MODULES.items():
        ways = ("forward",) if path == "net.front" else ("forward", "backward", "recompute")
        apart = _apart(draw, *ways)
        notes = {"class": kind, "calls": 1.0, **apart}
        rows.append(Measurement.of(metric, _summed(apart), scope=f"module:{path}", notes=notes))
    for scope, modules in LABELS.items():
        inside = {path: _apart(draw, "forward", "backward") for path in modules}
        own = {} if modules else _apart(draw, "forward")
        ways = dict.fromkeys(way for part in (*inside.values(), own) for way in part)
        apart = {way: _summed({str(n): part[way] for n, part in enumerate((*inside.values(), own)) if way in part})
                 for way in ways}  # fmt: skip
        notes = {"calls": 1.0, **apart, **({"inside": inside} if inside else {})}
        rows.append(Measurement.of(metric, _summed(apart), scope=scope, notes=notes))
    for scope in ("stage:loss", "unattributed"):
        apart = _apart(draw, "forward", "backward")
        rows.append(Measurement.of(metric, _summed(apart), scope=scope, notes={"calls": 0.0, **apart}))
    return [row for row in rows if row.scope not in missing]


def _operators(draw: random.Random, *, with_rare: bool) -> list[Measurement]:
    kinds = {"aten::mm": "matrix", "aten::relu": "elements", **({"aten::sort": "unknown"} if with_rare else {})}
    inside = {name: {path: _apart(draw, "forward") for path in ("net.front", "net.blocks.0")} for name in kinds}
    outside = {name: _times(draw) for name in kinds}
    times = {
        name: [
            sum(one) for one in zip(outside[name], *(part["forward"] for part in inside[name].values()), strict=True)
        ]
        for name in kinds
    }
    metric = metrics.TIME_OPERATOR
    return [
        Measurement.of(metric, [sum(call) for call in zip(*times.values(), strict=True)], notes={"calls": CALLS}),
        *(
            Measurement.of(
                metric,
                _summed({name: times[name] for name in kinds if kinds[name] == kind}) or [0.0] * CALLS,
                scope=f"kind:{kind}",
            )
            for kind in ("matrix", "elements", "moves", "wraps", "unknown")
        ),
        *(
            Measurement.of(metric, times[name], scope=f"op:{name}", notes={"kind": kind, "inside": inside[name]})
            for name, kind in kinds.items()
        ),
    ]


def _split(draw: random.Random) -> list[Measurement]:
    kinds = ("kernel", "memcpy", "runtime", "cpu", "idle")
    return [
        *(Measurement.of(metrics.TIME_SPLIT, _times(draw), scope=f"split:{kind}") for kind in kinds),
        Measurement.of(metrics.AUDIO_SECONDS, [2.0, 4.0]),
        Measurement.of(metrics.TIME_BUSY, _times(draw), scope="busy:cpu"),
        Measurement.of(metrics.TIME_BUSY, _times(draw), scope="busy:gpu"),
    ]


def _stages(draw: random.Random) -> list[Measurement]:
    stages = {"stage:features": True, "stage:model": True, "stage:copy": False, "stage:decode": True}
    times = {scope: _times(draw) for scope in stages}
    total = [sum(call) for call in zip(*(times[scope] for scope in stages if stages[scope]), strict=True)]
    return [
        Measurement.of(metrics.LATENCY, total),
        *(
            Measurement.of(metrics.LATENCY, times[scope], scope=scope, notes={"clocked": clocked})
            for scope, clocked in stages.items()
        ),
    ]
