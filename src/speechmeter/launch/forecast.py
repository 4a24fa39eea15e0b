"""How long measurements will take, from what earlier ones took on this machine.

A measurement is one case in one round. What is known best is the same case; then the same model at another size, of
which the fixed part (start, data, load) stays and the rest grows with the input; then the same model with other
settings. Of a model that was never measured here only the least is known: the start of its processes.
The range is meant to hold the true duration, so it is widened where few records are behind it.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from speechmeter.core import metrics
from speechmeter.core.errors import SkippedLinesWarning, SpeechmeterError
from speechmeter.core.machine import host_name
from speechmeter.core.types import Case, Limits, Record
from speechmeter.engine.phases import processes_of
from speechmeter.launch.executors import Extent, meters_of
from speechmeter.launch.live import speech_s
from speechmeter.launch.schedule import Left
from speechmeter.store.run_dir import newest_runs

_LEAST_START_S = 0.2
"""No measuring process has taken less: it is forked, it loads the model, and it ends."""
_OVER_LIMIT_S = 10.0
"""A process that reaches its time limit is ended within this."""
_FIXED = frozenset({"start", "data", "load"})
"""Phases of a measuring process that hardly depend on the size of the input."""
_FORKED = 0.1
"""The share of these that is left where a process is forked, with the libraries imported already."""
_RANK: Mapping[Extent, int] = {"timing": 0, "repeat": 1, "all": 2}
"""Extents of a round, the shortest first."""
_WIDER_ROUND, _NARROWER_ROUND = 4.0, 0.2
"""How much longer a round may be than a shorter kind of round of the same case, and how short beside a longer one."""


class Basis(Enum):
    """What an expectation is made from, the best first."""

    CASE = "the same case"
    SIZE = "the same model at other sizes"
    MODEL = "the same model with other settings"
    NOTHING = "nothing"
    """A model that was never measured here."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The seconds of one measurement. Of what was never measured here only the least is known."""

    least_s: float
    most_s: float
    basis: Basis


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The seconds of several measurements, from `least_s` to `most_s`, and how many of them each basis is behind.

    `unknown` more are of models that were never measured here: they take at least `unknown_s` together, and each of
    them at most `limit_s`, where there is a limit. `extra` more may be added for precision, which take at most
    `extra_s`; without those of which nothing is known. `records` are the earlier ones that it is made from.
    """

    least_s: float
    most_s: float
    basis: Mapping[Basis, int]
    records: int
    unknown: int = 0
    unknown_s: float = 0.0
    limit_s: float | None = None
    extra: int = 0
    extra_s: float = 0.0

    @property
    def total(self) -> int:
        """How many measurements it is of, without those that may be added."""
        return sum(self.basis.values()) + self.unknown


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What is remembered of a record. `sure`: it says how its processes were started, so that the next are alike."""

    extent: Extent
    size: float
    wall_s: float
    fixed_s: float
    sure: bool

    @property
    def rest_s(self) -> float:
        return max(0.0, self.wall_s - self.fixed_s)

    @property
    def least_s(self) -> float:
        return _FORKED * self.fixed_s + self.rest_s


@dataclass(kw_only=True)
class History:
    """What measurements took on this machine, and what limits them. Records of other machines are left out."""

    limits: Limits = field(default_factory=Limits)
    host: str = field(default_factory=host_name)
    _cases: dict[str, list[_Seen]] = field(default_factory=dict)
    _lines: dict[str, list[_Seen]] = field(default_factory=dict)
    _models: dict[tuple[str, ...], list[_Seen]] = field(default_factory=dict)
    _speech_s: dict[str, float] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Note one more record. Of the same case, what failed counts too: it will take that long again."""
        if not record.wall_s or record.host != self.host:
            return
        case = record.case
        extent: Extent = "all" if record.round == 0 else "repeat" if record.pilot is None else "timing"
        seen = _seen(record, extent)
        self._cases.setdefault(case.id, []).append(seen)
        if record.status == "ok":
            self._lines.setdefault(_line(case), []).append(seen)
            self._models.setdefault(_model(case), []).append(seen)

    def expected(self, case: Case, extent: Extent) -> Expected:
        """The seconds of one measurement of a case."""
        wanted = _Wanted(extent=extent, size=_size(case))
        basis, seen = self.behind(case)
        if basis is Basis.CASE:
            least, most = wanted.of_case(seen)
        elif basis is Basis.SIZE:
            least, most = wanted.of_line(seen)
        elif basis is Basis.MODEL:
            least, most = wanted.of_model(seen)
        else:
            least, most = _LEAST_START_S * len(processes_of(case, meters_of(case))), math.inf
        limit = math.inf if self.limits.time_s is None else self.limits.time_s
        spoken = self._spoken(case)  # no limit counts it, and of other cases it is another
        if basis is not Basis.CASE:
            least, most = least + spoken, most + spoken
        limit += spoken + (0.0 if basis is Basis.NOTHING else _OVER_LIMIT_S)
        return Expected(least_s=min(least, limit), most_s=min(most, limit), basis=basis)

    def _spoken(self, case: Case) -> float:
        if case.id not in self._speech_s:
            self._speech_s[case.id] = speech_s(case)
        return self._speech_s[case.id]

    def behind(self, case: Case) -> tuple[Basis, Sequence[_Seen]]:
        """What an expectation of this case is made from: the best that is known."""
        if same := self._cases.get(case.id):
            return Basis.CASE, same
        if line := self._lines.get(_line(case)):
            return Basis.SIZE, line
        if model := self._models.get(_model(case)):
            return Basis.MODEL, model
        return Basis.NOTHING, ()


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    extent: Extent
    size: float

    def of_case(self, seen: Sequence[_Seen]) -> tuple[float, float]:
        """From rounds of the same kind, where there are any."""
        alike = [one for one in seen if one.extent == self.extent]
        ranges = [self._kind(one, one.wall_s if one.sure else one.least_s, one.wall_s) for one in alike or seen]
        return _widened(ranges, 1.25 if len(alike) > 2 else 1.5)

    def of_line(self, seen: Sequence[_Seen]) -> tuple[float, float]:
        """From the nearest size: what is not fixed takes at most a little more than in proportion to the size."""
        nearest = min(abs(math.log(self.size / one.size)) for one in seen)
        ranges = [self._sized(one) for one in seen if abs(math.log(self.size / one.size)) <= nearest + 1e-9]
        return _widened(ranges, 1.5)

    def of_model(self, seen: Sequence[_Seen]) -> tuple[float, float]:
        """From other settings, which may change anything but the order of magnitude."""
        return _widened([self._sized(one) for one in seen], 4.0)

    def _sized(self, seen: _Seen) -> tuple[float, float]:
        ratio = self.size / seen.size
        least = _FORKED * seen.fixed_s + seen.rest_s * min(1.0, ratio)  # where its processes are forked
        return self._kind(seen, least, seen.fixed_s + seen.rest_s * max(1.0, ratio**1.3))

    def _kind(self, seen: _Seen, least: float, most: float) -> tuple[float, float]:
        longer = _RANK[self.extent] - _RANK[seen.extent]
        return least * (_NARROWER_ROUND if longer < 0 else 1.0), most * (_WIDER_ROUND if longer > 0 else 1.0)


def _widened(ranges: Sequence[tuple[float, float]], factor: float) -> tuple[float, float]:
    return min(least for least, _ in ranges) / factor, max(most for _, most in ranges) * factor


def forecast(left: Left, history: History) -> Forecast:
    """The seconds that what is left of a sweep will take, one measurement after another."""
    found = [(case, history.expected(case, extent)) for case, extent in left.certain]
    known = [one for _, one in found if one.basis is not Basis.NOTHING]
    unknown = [one for _, one in found if one.basis is Basis.NOTHING]
    least_s = sum(one.least_s for one in known)
    added = [
        one.most_s for case in left.possible if (one := history.expected(case, "timing")).basis is not Basis.NOTHING
    ]
    extra_s = sum(added)
    if history.limits.run_s is not None:  # no round of these is started after this
        extra_s = min(extra_s, max(0.0, history.limits.run_s - least_s) + max(added, default=0.0))
    return Forecast(
        least_s=least_s,
        most_s=sum(one.most_s for one in known),
        basis=Counter(one.basis for one in known),
        records=len({id(seen) for case, _ in found for seen in history.behind(case)[1]}),
        unknown=len(unknown),
        unknown_s=sum(one.least_s for one in unknown),
        limit_s=None if history.limits.time_s is None else max((one.most_s for one in unknown), default=0.0),
        extra=len(left.possible),
        extra_s=extra_s,
    )


def earlier(folders: Iterable[Path], limits: Limits) -> History:
    """What the newest runs in some folders took on this machine; runs that cannot be read are left out."""
    history = History(limits=limits)
    for run in {run.path.resolve(): run for folder in folders for run in newest_runs(folder)}.values():
        try:
            with warnings.catch_warnings():  # nobody asked about damaged lines of other runs
                warnings.simplefilter("ignore", SkippedLinesWarning)
                records = run.records()
        except (SpeechmeterError, OSError):
            continue
        for record in records:
            history.add(record)
    return history


def _size(case: Case) -> float:
    """Seconds times batch, as far as a case has them."""
    return max(1e-3, float(case.axes.seconds or 1.0) * float(case.axes.batch or 1))


def _line(case: Case) -> str:
    return case.with_axes(seconds=None, batch=None).id


def _model(case: Case) -> tuple[str, ...]:
    return case.subject.plugin, case.subject.name, case.subject.source, case.axes.device


def _seen(record: Record, extent: Extent) -> _Seen:
    phases = [m for m in record.measurements if m.metric == metrics.PHASE.id]
    pairs = (pair for m in phases for pair in zip(m.notes.get("phases", ()), m.values, strict=False))
    fixed_s = sum(seconds for name, seconds in pairs if name in _FIXED)
    return _Seen(
        extent=extent, size=_size(record.case), wall_s=record.wall_s, fixed_s=min(record.wall_s, fixed_s),
        sure=bool(phases) and all("start" in m.notes for m in phases),
    )  # fmt: skip
