"""Compare two selections of records: runs, filters of a run, or two subjects of one run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from speechmeter.analysis.compare import Verdict, case_differences, environment_differences, verdict
from speechmeter.analysis.module_tree import tree
from speechmeter.analysis.modules import EVERYTHING, time_metric
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.hosts import HOST, hosts_apart
from speechmeter.core.metrics import Metric
from speechmeter.core.plugins import nearest
from speechmeter.core.types import LEFT_OUT, VARIANT, Case, Record
from speechmeter.report.selecting import MODEL, fits, nothing_fits, parse
from speechmeter.report.tables import by_case
from speechmeter.store.run_dir import RunDir

MODULES = "modules"
_LOOSE = ("seconds", "batch", "device", "dtype")
_ALIKE = (("axes", "workload", "protocol"), ("axes", "workload"), ("axes",), ("workload",), ())
"""What two cases must share beside their model and `_LOOSE` to be of one cell: first everything, then less and less."""
"""Axes that tell cells apart; a difference in any other axis is a difference of protocol, and is named."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Some cases of a run: `RUN`, or `RUN@model=a,threads=2`."""

    path: Path
    filters: Mapping[str, str]
    groups: tuple[tuple[Record, ...], ...]
    environments: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All verdicts, and notes on what differs or is missing."""

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]


def select(text: str) -> Selection:
    """Read a selection. Raises InputError for a missing run, a filter that is none, or one that fits nothing."""
    path, filters = parse(text)
    run = RunDir.existing(path)
    measured = [record for record in hosts_apart(run.records()) if record.status != "skipped"]
    chosen = tuple(tuple(group) for group in by_case(measured).values() if fits(group[0], filters))
    if not chosen:
        raise nothing_fits(text, filters, measured)
    return Selection(path=path, filters=filters, groups=chosen, environments=run.environments())


def compare(
    base: Selection, new: Selection, thresholds: Mapping[str, float], *, allow_different: bool = False
) -> Comparison:
    """Verdicts on every cell that both selections have, for each metric in `thresholds` (its smallest effect).

    Raises InputError when protocol, environment or machine differ, unless `allow_different`; then the notes say how.
    """
    ignored = {*base.filters, *new.filters, VARIANT}
    notes: list[str] = []
    verdicts: list[Verdict] = []
    _check_hosts(base, new)
    together = base.path.resolve() == new.path.resolve()
    matched, alone = _matched(base, new, ignored)
    for old, fresh in matched:
        differences = case_differences(old[0].case, fresh[0].case, sorted(ignored))
        machine, code = _environments(base, new, old, fresh)
        _refuse(differences + machine, old, allow_different)
        notes += [*(f"different: {text}" for text in differences + machine), *(f"code: {text}" for text in code)]
        beside = together and old[0].host == fresh[0].host
        for name, min_effect in thresholds.items():
            for metric, scope in _asked(name, old, fresh):
                verdicts.append(verdict(old, fresh, metric, min_effect, together=beside, scope=scope))
    if not verdicts:
        raise InputError("BASE and NEW have no cell in common", where=str(new.path), fix="compare runs of one plan")
    return Comparison(verdicts=tuple(verdicts), notes=tuple(dict.fromkeys([*notes, *alone])))


def read_thresholds(path: Path) -> dict[str, float]:
    """Smallest effects by metric from a YAML file such as `latency: 5%`."""
    try:
        data = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f"cannot be read: {' '.join(str(error).split())}", where=str(path), fix="latency: 5%"
        ) from error
    if not isinstance(data, dict) or not data:
        raise InputError("holds no thresholds", where=str(path), fix="write lines such as `latency: 5%`")
    return {str(name): share(value, f"{path}: {name}") for name, value in data.items()}


def share(value: Any, where: str) -> float:
    """`5%` or 0.05 as 0.05. Raises InputError for what is no share above 0, and for a bare number from 1 on."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise InputError(f"{value!r} is not a share above 0", where=where, fix="for example 5%")
    if number >= 1 and not text.endswith("%"):
        raise InputError(f"{text} as a share would be {number * 100:g} %", where=where, fix=f"write {text}%")
    return number


def _check_hosts(base: Selection, new: Selection) -> None:
    """Records of several machines are held against those of the same ones, or one machine is chosen."""
    base_hosts, new_hosts = ({group[0].host for group in side.groups if _of_machine(group[0])} for side in (base, new))
    if base_hosts == new_hosts:
        return
    for side, hosts in ((base, base_hosts), (new, new_hosts)):
        if len(hosts) > 1:
            raise several_hosts("this holds records of", side, hosts)


def _of_machine(record: Record) -> bool:
    return record.status not in LEFT_OUT or HOST in record.case.axes


def several_hosts(what: str, side: Selection, hosts: Iterable[str]) -> InputError:
    """What to raise where one machine is needed, and a selection has several."""
    names = sorted(hosts)
    filters = ",".join(f"{key}={value}" for key, value in {**side.filters, HOST: names[0]}.items())
    return InputError(
        f"{what} {len(names)} machines: {', '.join(names)}",
        where=str(side.path),
        fix=f"choose one: {shlex.quote(f'{side.path}@{filters}')}",
    )


def _matched(
    base: Selection, new: Selection, ignored: set[str]
) -> tuple[list[tuple[tuple[Record, ...], tuple[Record, ...]]], list[str]]:
    """Pairs of cases of the same cell, the most alike first; cells that only one side has are named."""
    left, right = list(base.groups), list(new.groups)
    found: dict[str, tuple[Record, ...]] = {}
    for alike in _ALIKE:
        olds, news = (_by_key(side, ignored, alike) for side in (left, right))
        for key in olds.keys() & news.keys():
            if len(olds[key]) == len(news[key]) == 1:
                found[news[key][0][0].case.id] = olds[key][0]
        used = {group[0].case.id for group in found.values()}
        left = [group for group in left if group[0].case.id not in used]
        right = [group for group in right if group[0].case.id not in found]
    pairs = [(found[group[0].case.id], group) for group in new.groups if group[0].case.id in found]
    alone = [f"only in NEW: {group[0].case.label}" for group in right]
    return pairs, alone + [f"only in BASE: {group[0].case.label}" for group in left]


def _by_key(
    groups: Iterable[tuple[Record, ...]], ignored: set[str], alike: tuple[str, ...]
) -> dict[str, list[tuple[Record, ...]]]:
    found: dict[str, list[tuple[Record, ...]]] = {}
    for group in groups:
        found.setdefault(_key(group[0].case, ignored, alike), []).append(group)
    return found


def _key(case: Case, ignored: set[str], alike: tuple[str, ...]) -> str:
    names = sorted(name for name in case.axes if name not in ignored and ("axes" in alike or name in _LOOSE))
    model = "" if MODEL in ignored else case.subject.name
    workload = case.workload.to_json() if "workload" in alike else {}
    protocol = dict(case.protocol) if "protocol" in alike else {}
    return json.dumps([model, [(name, case.axes[name]) for name in names], workload, protocol], sort_keys=True)


def _environments(
    base: Selection, new: Selection, old: Sequence[Record], fresh: Sequence[Record]
) -> tuple[list[str], list[str]]:
    first = base.environments.get(old[0].environment, {}).get("facts", {})
    second = new.environments.get(fresh[0].environment, {}).get("facts", {})
    return environment_differences(first, second) if first and second else ([], [])


def _refuse(differences: Sequence[str], old: Sequence[Record], allowed: bool) -> None:
    if differences and not allowed:
        raise InputError(
            f"{old[0].case.label}: BASE and NEW were not measured alike: {'; '.join(differences[:3])}",
            fix="measure both alike, or add --allow-different",
        )


def _asked(name: str, old: Sequence[Record], fresh: Sequence[Record]) -> list[tuple[Metric, str]]:
    """The metric and scopes that a word means: `modules` is every module and label that either side has."""
    if name != MODULES:
        return [(metric_named(name, old), "total")]
    lines = dict.fromkeys(line.scope for side in (old, fresh) for line in tree(side))
    if not lines:
        raise InputError("neither run has times of modules", where="--metric modules", fix="run the meter `modules`")
    return [(time_metric(old), scope) for scope in (EVERYTHING, *lines)]


def metric_named(name: str, records: Sequence[Record]) -> Metric:
    """The metric that a user means by a word, for these records. Raises InputError for one that means none, or many."""
    on_cuda = str(records[0].case.axes.get("device", "")).startswith("cuda")
    return metrics.MEMORY_CUDA_ALLOCATED if name == "memory" and on_cuda else known_metric(name, where="--metric")


def known_metric(name: str, *, where: str) -> Metric:
    """What a word means before there are records: `memory` is that of the CPU. Raises InputError as `metric_named`."""
    if name == MODULES:
        raise InputError(
            "modules can be compared between two runs only",
            where=where,
            fix="speechmeter compare BASE NEW --metric modules",
        )
    found = metrics.MEMORY_CPU_PEAK if name == "memory" else metrics.find(name)
    if found is None:
        choices = ["memory", MODULES, *sorted({metric.name for metric in metrics.known()})]
        raise InputError(f"there is no metric {name!r}", where=where, fix=nearest(name, choices))
    return found
