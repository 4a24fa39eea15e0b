"""Answers as large figures: digits, unit, interval or why there is none, and what is said of them, by rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.frontier import Size
from speechmeter.analysis.intervals import Quantity
from speechmeter.analysis.study import Answer
from speechmeter.core import metrics
from speechmeter.core.finding import target_of
from speechmeter.core.metrics import Metric
from speechmeter.report.caveats import brief, gathered, warnings_of
from speechmeter.report.charts.findings import named
from speechmeter.report.labels import cell_words
from speechmeter.report.numbers import counted, figure, number

ONE_ROUND = "one round: no interval"
_EQUAL = {
    "accuracy": "is about equally accurate",
    "fastest": "is about equally fast",
}
"""What is said instead where nobody can be distinguished from the best."""
_PLURAL = {"is": "are", "has": "have", "needs": "need", "takes": "take", "runs": "run", "keeps": "keep"}
_SPEED = "× real time"
_SCORED = ("accuracy", "live errors")
_BEYOND = {"streams": "are too many"}
"""What is said of the least size that is too large."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One answer: a large figure, its interval or why there is none, and what it is.

    `charts` are the sections that may show it, the best first; among their figures one of `metric` that has `within`
    in its title, and `written` is how they write the figure. `tabled` is whether the table of cases can have it.
    `case` is the id of the case behind it, and `warning` what disturbed that, in short.
    """

    value: str
    unit: str
    interval: str
    label: str
    name: str
    clause: str
    next: str = ""
    charts: tuple[str, ...] = ()
    metric: Metric
    within: str = ""
    case: str = ""
    warning: str = ""
    written: str = ""
    tabled: bool = True


def finding_of(answer: Answer) -> Finding:
    """The answer with its large figure."""
    text, unit = _large(answer)
    clause, label, charts = _WORDS[answer.rule](answer)
    if answer.of > 1 and len(answer.names) == answer.of:
        clause = _EQUAL.get(answer.rule, clause)
    metric = answer.figure.metric
    return Finding(
        value=text, unit=unit, interval=_interval(answer), label=label, name=named(answer.names), next=_next(answer),
        clause=clause if len(answer.names) == 1 else plural(clause), charts=charts,
        metric=_METRIC.get(metric.id, metric), within=answer.where if answer.rule in _LOSSES else "",
        case=answer.rounds[0].case.id if answer.rounds else "",
        warning=_warning(answer), written=_written(answer), tabled=not isinstance(answer.figure, Size),
    )  # fmt: skip


def _written(answer: Answer) -> str:
    """The figure as charts write it, which draw the real-time factor in place of times real time."""
    found = answer.figure
    if found.metric.id == metrics.RTFX.id:
        found = estimate(answer.rounds, metrics.RTF) or found
    return _bare(found)


def _warning(answer: Answer) -> str:
    """What disturbed the case of a figure; nothing for memory and scores, which other programs do not change."""
    if answer.rule in _SCORED or answer.figure.metric.unit == "bytes":
        return ""
    return "; ".join(brief(text) for text in gathered([warnings_of(answer.rounds)]))


_METRIC = {metrics.RTFX.id: metrics.RTF}
"""What charts show instead."""


def _large(answer: Answer) -> tuple[str, str]:
    """(the digits, the unit behind them)."""
    if isinstance(answer.figure, Size):
        return figure(answer.figure), "streams" if answer.rule == "streams" else _axis(answer)
    if answer.figure.metric.id == metrics.RTFX.id:
        return number(answer.figure.value, "1"), _SPEED
    text, _, unit = number(answer.figure.value, answer.figure.metric.unit).partition(" ")
    said = answer.figure.metric.title if answer.rule in _SCORED or not unit else ""
    return text, f"{unit} {said}".strip()


def _axis(answer: Answer) -> str:
    target = target_of(answer.rounds[0].case) if answer.rounds else None
    axis = "batch" if target is None else target.axis
    return {"seconds": "s", "batch": "items", "max_frames": "frames"}.get(axis, axis)


def _next(answer: Answer) -> str:
    """Who comes next, with the figure."""
    if answer.rule in (*_EQUAL, "memory", "energy") and answer.of > 1 and len(answer.names) == answer.of:
        return "equal within their intervals"
    if not answer.other or answer.other_figure is None or answer.rule == "cost of accuracy":
        return ""
    return f"next: {answer.other}, {_bare(answer.other_figure)}"


def _bare(found: Quantity) -> str:
    """The figure without its interval."""
    return figure(found) if isinstance(found, Size) else number(found.value, found.metric.unit)


def _interval(answer: Answer) -> str:
    """The interval in words, or why there is none."""
    found = answer.figure
    if isinstance(found, Size):
        rounds = "one round" if len(answer.rounds) == 1 else counted(len(answer.rounds), "round")
        if answer.limit is None:
            return f"{rounds}; nothing larger was tried"
        return f"{rounds}; {figure(answer.limit)} {_BEYOND.get(answer.rule, 'does not fit')}"
    if found.low is not None and found.high is not None:
        low, high = (number(bound, found.metric.unit) for bound in (found.low, found.high))
        unit = high.partition(" ")[2]
        return f"95 % interval {low.removesuffix(f' {unit}') if unit else low} to {high}"
    if found.metric.exact:
        return "an exact count: no interval"
    why = no_interval(answer)
    return ONE_ROUND if why == "one round" else f"no interval: {why}" if why else "no interval"


def no_interval(answer: Answer) -> str:
    """`one round`, `1 utterance`: why the figure of an answer has no interval; empty where it has one or is exact."""
    found = answer.figure
    if isinstance(found, Size):
        return "one round" if len(answer.rounds) == 1 else ""
    if found.metric.exact or found.low is not None:
        return ""
    if found.statistic in ("geomean", "mean", "ratio", "mean-sd"):
        return "one round" if found.rounds == 1 else ""
    return counted(found.samples_per_round, "utterance")


Words = tuple[str, str, tuple[str, ...]]
"""(what is said of the name, what stands below the figure, the charts that show it)."""


def at_size(answer: Answer) -> str:
    """` at 8 s × 1`, where the compared ones have a size."""
    if answer.size is None or answer.size == ("all", "all"):
        return ""
    words = cell_words(*answer.size)
    return "" if words in ("batch 1", "all") else f" at {words}"


def _of(answer: Answer, noun: str = "models") -> str:
    """` of 4 models`."""
    return f" of {answer.of} {noun if answer.models == answer.of else 'settings'}" if answer.of > 1 else ""


def _accuracy(answer: Answer) -> Words:
    metric = answer.figure.metric
    best = "highest" if metric.direction == "higher" else "lowest"
    charts = ("front", "models")
    if answer.of == 1:
        return f"has a {metric.title} of {figure(answer.figure)}", metric.title, charts
    return f"has the {best} {metric.title}", f"{best} {metric.title}{_of(answer, 'systems')}", charts


def _fastest(answer: Answer) -> Words:
    charts = ("models", "scaling", "grid", "stages")
    if answer.of > 1:
        return "is fastest", f"fastest{_of(answer)}{at_size(answer)}", charts
    if answer.figure.metric.id == metrics.RTFX.id:
        said = f"runs at {number(answer.figure.value, '1')} {_SPEED}{at_size(answer)}"
        return said, f"speed{at_size(answer)}", charts
    text = number(answer.figure.value, answer.figure.metric.unit)
    return f"takes {text} for a call{at_size(answer)}", f"latency of a call{at_size(answer)}", charts


def _accuracy_cost(answer: Answer) -> Words:
    times = f"{number(answer.ratio or 1.0, '1')} times as long as {answer.other}"
    return f"takes {times}", f"takes {times}, the fastest", ("front", "models")


def _real_time(answer: Answer) -> Words:
    slowest = f"slowest of {_cases(answer)}{at_size(answer)}; all of these are faster than real time"
    return f"all {_cases(answer)} are faster than real time", slowest, ("scaling", "grid", "models")


def _cases(answer: Answer) -> str:
    """`12 measured cases`, `12 measured cases (of 14)` where others have no figure."""
    others = f" (of {answer.tried})" if answer.tried > answer.of else ""
    return f"{answer.of} measured cases{others}"


def _too_slow(answer: Answer) -> Words:
    many = f"{answer.slow} of {_cases(answer)} {'is' if answer.slow == 1 else 'are'} not faster than real time"
    first = f"first case that is not faster than real time{at_size(answer)}; {answer.slow} of {answer.of} are not"
    return many, first, ("scaling", "grid", "models")


def _least(answer: Answer) -> Words:
    metric = answer.figure.metric
    memory = metric.unit == "bytes"
    charts = ("grid", "memory") if memory else ("energy",)
    noun = "memory" if memory else "energy"
    what = f" ({_MEMORY[metric.id]})" if metric.id in _MEMORY else ""
    title = f"{metric.title}{what}"
    if answer.of == 1:
        text = number(answer.figure.value, metric.unit)
        return f"needs {text} of {noun}{what}", f"{title}{at_size(answer)}", charts
    if len(answer.names) == answer.of:
        return f"needs about equal {noun}{what}", f"lowest {title}{_of(answer)}{at_size(answer)}", charts
    return f"needs the least {noun}{what}", f"lowest {title}{_of(answer)}{at_size(answer)}", charts


_MEMORY = {
    metrics.MEMORY_CPU_TOTAL.id: "whole process",
    metrics.MEMORY_NEEDED.id: "weights and growth",
    metrics.MEMORY_CUDA_ALLOCATED.id: "on the GPU",
}
"""Of what a memory is, by the id of the metric: one word may mean several quantities."""


def _best(answer: Answer) -> Words:
    metric = answer.figure.metric
    best = "highest" if metric.direction == "higher" else "lowest"
    label = (
        f"{best} {metric.title}{_of(answer)}{at_size(answer)}" if answer.of > 1 else f"{metric.title}{at_size(answer)}"
    )
    return f"has the {best} {metric.title}", label, ()


def _loss(answer: Answer) -> Words:
    exact = _exactly(answer)
    inside = " in the whole step" if answer.rule == "step" else " alone"
    if answer.of == 1:
        text = number(answer.figure.value, answer.figure.metric.unit)
        return f"takes {text}{inside}, the only {exact}loss", f"{answer.figure.metric.title}, {answer.where}", _LOSS
    return f"is the fastest {exact}loss{inside}", f"fastest of {answer.of} {exact}losses, {answer.where}", _LOSS


def _loss_memory(answer: Answer) -> Words:
    title, exact = answer.figure.metric.title, _exactly(answer)
    if answer.of == 1:
        text = number(answer.figure.value, answer.figure.metric.unit)
        return f"needs {text} of memory, the only {exact}loss", f"{title}, {answer.where}", _LOSS
    label = f"lowest {title} of {answer.of} {exact}losses, {answer.where}"
    return f"needs the least memory of the {exact}losses", label, _LOSS


def _exactly(answer: Answer) -> str:
    """`exact ` where only the losses that agree with the reference were compared."""
    return "exact " if estimate(answer.rounds, metrics.LOSS_DEVIATION) is not None else ""


_LOSS = ("losses",)


def _module(answer: Answer) -> Words:
    return "takes the largest share of a call", f"largest share of a call, {answer.where}", ("modules",)


def _fits(answer: Answer) -> Words:
    target = target_of(answer.rounds[0].case) if answer.rounds else None
    axis = "batch" if target is None else target.axis
    where = f" at {answer.where}" if answer.where else ""
    clause = (
        f"takes the largest {axis}{where}" if answer.of > 1 else f"takes a {axis} of {_plain(answer.figure)}{where}"
    )
    return clause, f"largest {axis} that fits{where}", ("frontier",)


def _plain(found: Quantity) -> str:
    return figure(found).replace("≥", "at least")


def _delay(answer: Answer) -> Words:
    metric = answer.figure.metric
    text = number(answer.figure.value, metric.unit)
    load = f" with {answer.where}" if answer.where else ""
    noted = f",{load}" if load else ""
    charts = ("speech",) if metric == metrics.FIRST_SOUND else ("live",)
    if answer.of == 1:
        return f"has a {metric.title} of {text}{load}", f"{metric.title}, median{noted}", charts
    label = f"lowest {metric.title} of {answer.of} systems, median{noted}"
    return f"has the lowest {metric.title}{load}", label, charts


def _streams(answer: Answer) -> Words:
    text = figure(answer.figure).replace("≥", "at least")
    return f"keeps up with {text} streams", "largest number of streams at which the delay does not grow", ("live",)


def _live_errors(answer: Answer) -> Words:
    _, label, _ = _accuracy(answer)
    return _accuracy(answer)[0], f"{label}, final texts", ("front", "live")


_WORDS: dict[str, Callable[[Answer], Words]] = {
    "accuracy": _accuracy,
    "fastest": _fastest,
    "cost of accuracy": _accuracy_cost,
    "real time": _real_time,
    "too slow": _too_slow,
    "memory": _least,
    "energy": _least,
    "loss": _loss,
    "step": _loss,
    "loss memory": _loss_memory,
    "module": _module,
    "fits": _fits,
    "best": _best,
    "delay": _delay,
    "streams": _streams,
    "live errors": _live_errors,
}
"""By the rule of an answer."""
_LOSSES = ("loss", "step", "loss memory")
OF_ALL = ("real time", "too slow")
"""Rules whose clause is a sentence of its own, about all cells."""


def plural(clause: str) -> str:
    """The clause for several names: `are fastest`."""
    verb, _, rest = clause.partition(" ")
    return f"{_PLURAL.get(verb, verb)} {rest}"
