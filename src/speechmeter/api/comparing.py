"""Compare two selections of records: runs, filters of a run, or two subjects of one run."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from speechmeter.analysis.compare import ALLOWANCE, Lasting, Verdict, missing, verdict
from speechmeter.analysis.conditions import (
    SAME_CODE_FIX,
    batch_differences,
    case_differences,
    environment_differences,
    same_code,
)
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.family import Family, alone, together
from speechmeter.analysis.live.samples import CONVERSATIONS, is_live
from speechmeter.analysis.metric_names import LIVE, compared_metrics
from speechmeter.analysis.selecting import MODEL
from speechmeter.analysis.stated import is_stated, stated_metrics
from speechmeter.api.earlier_runs import EarlierRuns
from speechmeter.api.selections import Selection, Side, select, selected, several_hosts
from speechmeter.core.durations import seconds_of
from speechmeter.core.errors import InputError, as_python, command_line, for_python
from speechmeter.core.files import MIB, read_text
from speechmeter.core.hosts import HOST
from speechmeter.core.metrics import Metric
from speechmeter.core.types import LEFT_OUT, VARIANT, Case, Record
from speechmeter.report import text
from speechmeter.report.comparison import comparison_table
from speechmeter.report.explaining import definition_line
from speechmeter.report.notebook import notebook_html
from speechmeter.report.numbers import counted, number
from speechmeter.report.tables import Table
from speechmeter.store.run_dir import RunDir

__all__ = [
    "Comparison", "Selection", "compare", "read_thresholds", "select", "several_hosts", "share", "thresholds_of",
    "usual_metrics",
]  # fmt: skip

_USUAL_EFFECT = 0.05
_OUTCOMES = {0: "no regression", 1: "regression", 3: "cannot tell"}
_LOOSE = ("seconds", "batch", "device", "dtype")
"""Axes that distinguish cells; a difference in any other axis is a difference of protocol, and is named."""
_ALIKE = (("axes", "workload", "protocol"), ("axes", "workload"), ("axes",), ("workload",), ())
"""What two cases must share beside their model and `_LOOSE` to be of one cell: first everything, then less and less."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """The result of `compare`: all verdicts, and notes on what differs or is missing."""

    family: Family
    notes: tuple[str, ...]
    min_effect: str = "5%"

    def __repr__(self) -> str:
        return f"Comparison({_OUTCOMES[self.exit_code]}: {counted(len(self.verdicts), 'verdict')})"

    def _repr_html_(self) -> str:
        return notebook_html(f"NEW against BASE: {_OUTCOMES[self.exit_code]}", self.tables(), "use .table()")

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One a cell, metric and scope."""
        return self.family.verdicts

    @property
    def exit_code(self) -> int:
        """That of `speechmeter compare`: 0 without a regression, 1 with one, 3 if it cannot tell."""
        return self.family.exit_code()

    def tables(self) -> list[Table]:
        """The table that `speechmeter compare` prints."""
        return [comparison_table(self.family, self.notes, self.min_effect, as_python)]

    @for_python
    def table(self, format: str = "markdown") -> str:
        """The table that `speechmeter compare` prints, as text. Raises InputError for an unknown format."""
        return text.formatted(self.tables(), format)


@for_python
def compare(
    base: Side,
    new: Side,
    metrics: str | Sequence[str] | Mapping[str, float | str] = "latency",
    *,
    min_effect: float | str = "5%",
    allow_different: bool = False,
    allow_missing: bool = False,
    every_cell: bool = False,
) -> Comparison:
    """Compare two runs, or parts of runs (`"runs/a@model=b"`), in one or several metrics: a verdict for each cell.

    `min_effect` is the smallest change that counts; a mapping has one for each metric (`{"rtf": "5%"}`). `every_cell`
    judges each cell separately, without a correction for many comparisons. A cell that is only in BASE is MISSING;
    with `allow_missing` there is only a note. Raises InputError if protocol, environment or machine differ;
    `allow_different` compares nevertheless, and the notes list the differences.
    """
    base, new, thresholds = selected(base), selected(new), _thresholds(metrics, min_effect)
    ignored = {*base.filters, *new.filters, VARIANT}
    notes: list[str] = [*base.notes, *new.notes]
    verdicts: list[Verdict] = []
    _check_hosts(base, new)
    one_run = base.path.resolve() == new.path.resolve()
    earlier = EarlierRuns(base.path, new.path)
    at_two_times = False
    matched, only_new, only_base = _matched(base, new, ignored)
    for old, fresh in matched:
        differences = case_differences(old[0].case, fresh[0].case, sorted(ignored)) or batch_differences(old, fresh)
        facts = base.facts_of(old), new.facts_of(fresh)
        machine, code = environment_differences(*facts) if all(facts) else ([], [])
        if old[0].case.axes.get(VARIANT) != fresh[0].case.axes.get(VARIANT) and (same := same_code(*facts)):
            raise InputError(f"both interpreters run the same code: {same}", where=str(new.path), fix=SAME_CODE_FIX)
        if (differences or machine) and not allow_different:
            raise InputError(
                f"{old[0].case.label}: BASE and NEW were measured differently: "
                + "; ".join((differences + machine)[:3]),
                fix="measure both in the same way, or add `allow_different`",
            )
        notes += [*(f"different: {text}" for text in differences + machine), *(f"code: {text}" for text in code)]
        notes += _unknown(base, new, old, fresh)
        one_host = old[0].host == fresh[0].host
        lanes = [{record.lane for record in side} for side in (old, fresh)]
        beside = one_run and one_host and bool(lanes[0] & lanes[1])  # runs that were merged have lanes of their own
        between = earlier if one_host and not beside else None
        at_two_times |= between is not None
        for name, effect in thresholds.items():
            for metric, scope in compared_metrics(name, old, fresh, key="metric"):
                spread = None if between is None or is_live(metric) else between.spread(old, metric, scope)
                smallest = _checked(effect, metric, name)
                verdicts += [
                    verdict(
                        old, fresh, metric, smallest, together=beside, scope=scope, between=spread, statistic=statistic
                    )
                    for statistic in _statistics(metric, old, fresh)
                ]
    if not verdicts:
        raise InputError(
            "BASE and NEW have no case in common", where=str(new.path), fix="compare runs of the same plan"
        )
    notes += [f"only in NEW: {group[0].case.label}" for group in only_new]
    lost = [] if allow_missing else _lost(only_base, thresholds)
    named = {v.case.id for v in lost}
    notes += [f"only in BASE: {group[0].case.label}" for group in only_base if group[0].case.id not in named]
    notes += [
        f"{side} is unfinished: {one.unfinished}" for side, one in (("BASE", base), ("NEW", new)) if one.unfinished
    ]
    if at_two_times and any(v.difference is not None and not v.paired for v in verdicts):
        notes += _unpaired_notes(earlier, new)
    if found := [v for v in verdicts if v.change is not None]:
        notes += _live_notes(found)
    notes += [definition_line(v.metric) for v in verdicts if is_stated(v.metric)]
    judged = (alone if every_cell else together)([*verdicts, *lost])
    effects = {effect_words(effect) for effect in thresholds.values()}
    counts = effects.pop() if len(effects) == 1 else "given for each metric"
    return Comparison(family=judged, notes=tuple(dict.fromkeys(notes)), min_effect=counts)


def _thresholds(metrics: str | Sequence[str] | Mapping[str, float | str], min_effect: float | str) -> dict[str, float]:
    if isinstance(metrics, Mapping):
        return {name: smallest_effect(effect, key="min_effect") for name, effect in metrics.items()}
    effect = smallest_effect(min_effect, key="min_effect")
    return dict.fromkeys([metrics] if isinstance(metrics, str) else metrics, effect)


def _statistics(metric: Metric, old: Sequence[Record], fresh: Sequence[Record]) -> list[str]:
    """The usual figure, and of live delays the 95th percentile where enough utterances support it."""
    tail = metric.combined == CONVERSATIONS and all(estimate(side, metric, statistic="p95") for side in (old, fresh))
    return ["", "p95"] if tail else [""]


def _checked(effect: float, metric: Metric, word: str) -> float:
    """The smallest effect for a metric. A time is one for delays; of the others of `live` the usual share counts.

    Raises InputError for a time where the metric is no live delay.
    """
    if not isinstance(effect, Lasting) or (metric.unit == "s" and is_live(metric)):
        return effect
    if word == LIVE:
        return _USUAL_EFFECT
    raise InputError(
        f"{metric.name} is not a live delay, so its smallest effect must be a percentage, not a time",
        key="min_effect", fix="use a percentage such as 5%",
    )  # fmt: skip


def effect_words(effect: float) -> str:
    """The smallest effect as a reader writes it: `5%`, `30 ms`."""
    return number(effect, "s") if isinstance(effect, Lasting) else f"{100 * effect:g}%"


def _live_notes(found: Sequence[Verdict]) -> list[str]:
    """What a change of a live metric is."""
    delays = any(v.metric.combined == CONVERSATIONS and not v.statistic for v in found)
    tails = any(v.statistic for v in found)
    return [
        *(["change of a delay: the median over utterances of NEW − BASE; for word_lag, over words that both "
          "recognised correctly"]
          if delays else []),
        *(["p95: p95 of NEW − p95 of BASE"] if tails else []),
    ]  # fmt: skip


def _lost(groups: Iterable[tuple[Record, ...]], thresholds: Mapping[str, float]) -> list[Verdict]:
    """Cells that BASE measured and NEW does not have."""
    return [
        missing(group, metric, min_effect)
        for group in groups
        for name, min_effect in thresholds.items()
        for metric, _ in compared_metrics(name, group, group, key="metric")[:1]
        if estimate(group, metric) is not None
    ]


def _unpaired_notes(earlier: EarlierRuns, new: Selection) -> list[str]:
    """What an unpaired comparison cannot see, and the commands for a paired one."""
    if earlier.words:
        what = f"the spread between runs is estimated from {earlier.words}"
    else:
        what = f"this alone can cause a difference of up to {ALLOWANCE:.0%}, which is not reported as a change"
    stored = RunDir(new.path).plan_path
    plan = shlex.quote(str(stored)) if stored.is_file() else "PLAN.yaml"
    measure = command_line("run", plan, baseline_python="OLD/bin/python", output="RUN")
    judge = command_line("compare", "RUN@variant=baseline", "RUN@variant=this")
    return [
        f"the two runs were measured at different times: {what}",
        f"to compare side by side: {measure}, then {judge}",
    ]


def usual_metrics(*sides: Selection) -> list[str]:
    """What is compared where nothing is named: the latency, or of live cases what a speaker feels."""
    if shared := _shared_definitions(sides):
        return shared
    cases = [group[0].case for side in sides for group in side.groups]
    return [LIVE] if cases and all(case.live is not None for case in cases) else ["latency"]


def _shared_definitions(sides: Sequence[Selection]) -> list[str]:
    """The figures of other tools that every side has. Raises InputError where some have such figures, but none shared.

    Empty where no side has any.
    """
    held = [stated_metrics([record for group in side.groups for record in group]) for side in sides]
    shared = [metric.name for metric in held[0] if all(metric in own for own in held)]
    if any(held) and not shared:
        raise InputError(
            "BASE and NEW have no figure of one definition: they were measured by different tools",
            fix=f"put them side by side with their definitions: {command_line('import', 'FILE', 'FILE')}",
        )
    return shared


def thresholds_of(names: Sequence[str], min_effect: str, file: Path | None = None) -> dict[str, float]:
    """The smallest effect for each metric: `min_effect` for those named (else latency), then what a file says."""
    effect = smallest_effect(min_effect, key="min_effect")
    if file is None:
        return dict.fromkeys(names or ["latency"], effect)
    return {**dict.fromkeys(names, effect), **read_thresholds(file)}


def read_thresholds(path: Path) -> dict[str, float]:
    """Smallest effects by metric from a YAML file such as `latency: 5%`."""
    fix = 'write lines such as "latency: 5%"'
    try:
        data = yaml.safe_load(read_text(path, MIB))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), fix=fix) from error
    if not isinstance(data, dict) or not data:
        raise InputError("the file has no thresholds", where=str(path), fix=fix)
    return {str(name): smallest_effect(value, where=f"{path}: {name}") for name, value in data.items()}


def smallest_effect(value: Any, *, key: str | None = None, where: str | None = None) -> float:
    """`5%` or 0.05 as 0.05; a time such as `30ms`, for delays, as seconds that say so. Raises InputError as `share`."""
    if isinstance(value, Lasting):
        return value
    text = str(value).strip()
    seconds = seconds_of(text) if text[-1:].isalpha() else None
    return Lasting(seconds) if isinstance(seconds, float) and seconds > 0 else share(value, key=key, where=where)


def share(value: Any, *, key: str | None = None, where: str | None = None) -> float:
    """`5%` or 0.05 as 0.05. Raises InputError for what is not a share above 0, and for a bare number from 1 on."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise InputError(f"{value!r} is not a percentage above 0", key=key, where=where, fix="for example 5%")
    if number >= 1 and not text.endswith("%"):
        raise InputError(f"{text} means {number * 100:g} %", key=key, where=where, fix=f"write {text}%")
    return number


def _check_hosts(base: Selection, new: Selection) -> None:
    """Records of several machines are compared with those of the same machines, or one machine is chosen."""
    base_hosts, new_hosts = (
        {group[0].host for group in side.groups if group[0].status not in LEFT_OUT or HOST in group[0].case.axes}
        for side in (base, new)
    )
    if base_hosts == new_hosts:
        return
    for side, hosts in ((base, base_hosts), (new, new_hosts)):
        if len(hosts) > 1:
            raise several_hosts("it contains records of", side, hosts)


Rounds = tuple[Record, ...]
"""The records of one case."""


def _matched(
    base: Selection, new: Selection, ignored: set[str]
) -> tuple[list[tuple[Rounds, Rounds]], list[Rounds], list[Rounds]]:
    """Pairs of cases of the same cell, the most alike first; then what only NEW has, and what only BASE has."""
    left, right = list(base.groups), list(new.groups)
    found: dict[str, Rounds] = {}
    for alike in _ALIKE:
        olds: defaultdict[str, list[Rounds]] = defaultdict(list)
        news: defaultdict[str, list[Rounds]] = defaultdict(list)
        for groups, by_key in ((left, olds), (right, news)):
            for group in groups:
                by_key[_key(group[0].case, ignored, alike)].append(group)
        for key in olds.keys() & news.keys():
            if len(olds[key]) == len(news[key]) == 1:
                found[news[key][0][0].case.id] = olds[key][0]
        used = {group[0].case.id for group in found.values()}
        left = [group for group in left if group[0].case.id not in used]
        right = [group for group in right if group[0].case.id not in found]
    pairs = [(found[group[0].case.id], group) for group in new.groups if group[0].case.id in found]
    return pairs, right, left


def _key(case: Case, ignored: set[str], alike: tuple[str, ...]) -> str:
    names = sorted(name for name in case.axes if name not in ignored and ("axes" in alike or name in _LOOSE))
    model = "" if MODEL in ignored else case.subject.name
    workload = case.workload.to_json() if "workload" in alike else {}
    protocol = case.protocol.to_json() if "protocol" in alike else {}
    return json.dumps([model, [(name, case.axes[name]) for name in names], workload, protocol], sort_keys=True)


def _unknown(base: Selection, new: Selection, old: Sequence[Record], fresh: Sequence[Record]) -> list[str]:
    """A note on each side whose environment is named but not stored: whether it equals the other's is not known."""
    if old[0].environment == fresh[0].environment:
        return []
    return [
        f"{word} was measured in environment {group[0].environment}, which {side.path} does not describe, "
        "so the environments cannot be compared"
        for word, side, group in (("BASE", base, old), ("NEW", new, fresh))
        if group[0].environment and group[0].environment not in side.environments
    ]
