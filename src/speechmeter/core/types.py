"""The values that everything passes forward: frozen, keyword-only, and able to become JSON and come back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from speechmeter.core.axes import CORE_AXES, LIVE_AXES, NONE, SHARED_AXES, Axes
from speechmeter.core.device import Device
from speechmeter.core.live import Anchors
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import LiveProtocol, Protocol, protocol_from_json

SCHEMA = 1
"""Version of a record line. History: 1, first; `pilot` and `lane` came later, and a record may lack them."""

Status = Literal["ok", "skipped", "oom", "timeout", "crashed", "error", "unavailable"]
FAILED: frozenset[str] = frozenset({"oom", "timeout", "crashed", "error"})
"""Statuses of cases that were tried and did not finish."""
LEFT_OUT: frozenset[str] = frozenset({"skipped", "unavailable"})
"""Statuses of cases that were not tried: no machine measured such a record, it comes from whatever wrote the run."""

BATCHES = "batches"
"""The note of a measurement whose values are those of several batches by turns: how many."""
SAMPLED = "sampled"
"""The note of a measurement whose values are not those of the batches by turns: the index of the batch of each."""
VARIANT = "variant"
"""The axis of cases that are measured by two interpreters: `baseline` and `this`."""
BASELINE = "baseline"
"""Its value for the other interpreter, whose own packages come before what lies in the working folder."""
CONTENT_HASHES = ("sha256", "files")
"""Options of a workload that identify the content of its input: the first of a file, the second of a folder."""


_LIVE_AXES = frozenset(axis.name for axis in LIVE_AXES)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A plug-in by name with what it is to load: `transformers` + `wav2vec2` + options. `name` is for tables."""

    plugin: str
    name: str
    source: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as stored in a record."""
        return {"plugin": self.plugin, "name": self.name, "source": self.source, "options": dict(self.options)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spec:
        """The inverse of `to_json`."""
        source, options = data.get("source", ""), data.get("options", {})
        return cls(plugin=data["plugin"], name=data["name"], source=source, options=options)


@dataclass(frozen=True, kw_only=True, repr=False)
class Case:
    """One cell of a study: what is measured, on what, along which axes, by which meters and protocol.

    `id` is a hash of exactly these; rounds, limits, launcher and output are not part of it.
    """

    subject: Spec
    workload: Spec
    axes: Axes
    meters: tuple[str, ...]
    protocol: Protocol

    def __repr__(self) -> str:
        return f"Case({self.label!r}, id={self.id!r})"

    def with_axes(self, **changes: Any) -> Case:
        """The same case with these values along these axes."""
        return replace(self, axes=Axes({**self.axes, **changes}))

    def without_axis(self, name: str) -> Case:
        """The same case without this axis."""
        return replace(self, axes=Axes({axis: value for axis, value in self.axes.items() if axis != name}))

    @cached_property
    def id(self) -> str:
        """Sixteen hexadecimal digits that name this case on every machine."""
        text = _CANONICAL.encode(self.to_json())
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def device(self) -> Device:
        """What it runs on; the CPU where the axes do not say."""
        return Device.read(self.axes.device or "cpu")

    @property
    def live(self) -> LiveProtocol | None:
        """How conversations are held, of a case that is measured live; None for any other."""
        return self.protocol if isinstance(self.protocol, LiveProtocol) else None

    @cached_property
    def cell(self) -> str:
        """What this case shares with those it is measured beside: everything but the subject and its variant."""
        axes = {name: value for name, value in self.axes.items() if name != VARIANT}
        return json.dumps([self.workload.to_json(), axes, self.protocol.to_json()], sort_keys=True)

    def line(self, axis: str) -> str:
        """What this case shares with those that differ from it in one axis alone."""
        return self.with_axes(**{axis: None}).id

    @property
    def label(self) -> str:
        """A short line for progress and messages: `wav2vec2-base · cpu · 5 s × 4`, and what is not as usual."""
        parts = [self.subject.name, self.axes.device]
        if self.axes.seconds is not None:
            parts.append(f"{self.axes.seconds:g} s × {self.axes.batch or 1}")
        elif self.axes.batch is not None and self.axes.get("max_frames") is None:
            parts.append(f"batch {self.axes.batch}")
        usual = {axis.name: axis.default for axis in (*SHARED_AXES, *CORE_AXES)}
        if self.live is not None:
            many = f"{self.axes.streams} stream{'s' if self.axes.streams > 1 else ''}"
            if self.live.arrivals:
                many = self.live.arrivals + (f" {self.axes.rate:g}/s" if self.axes.rate else "")
            parts += [self.axes.pace, f"{self.axes.chunk_s * 1000:g} ms chunks", many]
        for name, value in self.axes.items():
            shown_above = name in ("device", "seconds", "batch", "threads", "cores", *_LIVE_AXES)
            if not shown_above and value not in (None, NONE, usual.get(name)):
                parts.append(f"{name} {value}")
        return " · ".join(part for part in parts if part)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as stored in a record."""
        return {
            "subject": self.subject.to_json(),
            "workload": self.workload.to_json(),
            "axes": self.axes.to_json(),
            "meters": list(self.meters),
            "protocol": self.protocol.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        """The inverse of `to_json`."""
        return cls(
            subject=Spec.from_json(data["subject"]),
            workload=Spec.from_json(data["workload"]),
            axes=Axes(data["axes"]),
            meters=tuple(data["meters"]),
            protocol=protocol_from_json(data["protocol"]),
        )


@dataclass(frozen=True, kw_only=True)
class Speech:
    """Sound that a model made for one item: a mono array of samples, and their rate."""

    samples: Any
    rate: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / self.rate


class Segments(list[tuple[float, float]]):
    """Stretches of speech in one item, (start, end) in seconds. A type, so that none of them is not an empty text."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Batch:
    """What one call is fed. `audio_s` is the sum of true seconds, never padded ones; None for losses and text.

    `data` is what the workload makes: sound as a float32 array (items, samples) at 16 kHz, features as one of (items,
    frames, bands), text as a tuple of lines or of tuples of token ids, shapes as an int32 array (items, 2) of frames
    and tokens. `lengths` count samples, frames, words or ids; `targets` of shapes count tokens. `speakers` are known of
    all items or of none. `facts` are what else is known of the call, one value a metric, the same in every batch.
    `anchors` say where speech is in each item; known of all items (empty ones where nothing was found) or of none.
    """

    data: Any
    items: int
    ids: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    audio_s: float | None = None
    padded_s: float | None = None
    references: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    targets: Any = None
    facts: tuple[Measurement, ...] = ()
    anchors: tuple[Anchors, ...] = ()

    def __repr__(self) -> str:
        return f"Batch(items={self.items}, audio_s={self.audio_s})"


def by_turns(batches: Sequence[Any]) -> dict[str, Any]:
    """The note for values that are those of the batches by turns; nothing for a single batch."""
    return {BATCHES: len(batches)} if len(batches) > 1 else {}


def batch_of_each(measurement: Measurement) -> Sequence[int]:
    """For each value the index of its batch among those that were measured."""
    count = int(measurement.notes.get(BATCHES, 1))
    sampled: Sequence[int] = measurement.notes.get(SAMPLED, ())
    return sampled or [index % count for index in range(len(measurement.values))]


def by_batch(measurement: Measurement) -> list[Sequence[float]]:
    """The values of each batch."""
    count, values = int(measurement.notes.get(BATCHES, 1)), measurement.values
    if SAMPLED not in measurement.notes:
        return [values[batch::count] for batch in range(count)]
    own = list(zip(batch_of_each(measurement), values, strict=True))
    return [[value for index, value in own if index == batch] for batch in range(count)]


@dataclass(frozen=True, kw_only=True, repr=False)
class Stage:
    """A step of a model's chain: `fn` gets the output of the step before. Code between models has `clocked=False`.

    If `fn` returns an iterator, it is consumed inside the clock, with a time for each item; the next stage gets the
    list. `tokens` returns the number of tokens in the stage's output. `pinned_tokens` is that number for each item if
    it is fixed beforehand, or a function that returns it for the latest call if it follows from the input's length.
    """

    name: str
    fn: Callable[[Any], Any]
    clocked: bool = True
    modules: Mapping[str, Any] = field(default_factory=dict)
    tokens: Callable[[Any], int] | None = None
    pinned_tokens: int | Callable[[], int] | None = None

    def __repr__(self) -> str:
        return f"Stage(name={self.name!r}, clocked={self.clocked})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Measurement:
    """Raw readings of one metric in one scope. Statistics are derived on reading, never stored.

    `unavailable` is the reason why there is no value; `values` is then empty.
    """

    metric: str
    unit: str
    values: tuple[float, ...] = ()
    scope: str = "total"
    source: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
    unavailable: str | None = None

    def __repr__(self) -> str:
        what = f"{len(self.values)} values" if self.unavailable is None else f"unavailable: {self.unavailable!r}"
        return f"Measurement({self.metric} [{self.unit}], {self.scope}, {what})"

    @classmethod
    def of(
        cls,
        metric: Metric,
        values: Sequence[float],
        *,
        scope: str = "total",
        source: str = "",
        notes: Mapping[str, Any] | None = None,
    ) -> Measurement:
        """A measurement of a registered metric; its unit comes from the definition."""
        return cls(
            metric=metric.id, unit=metric.unit, values=tuple(values), scope=str(scope), source=source, notes=notes or {}
        )

    @classmethod
    def absent(
        cls, metric: Metric, reason: str, *, scope: str = "total", notes: Mapping[str, Any] | None = None
    ) -> Measurement:
        """A metric that cannot be had, with the reason."""
        return cls(metric=metric.id, unit=metric.unit, scope=str(scope), unavailable=reason, notes=notes or {})

    def to_json(self) -> dict[str, Any]:
        """Plain data; fields at their defaults are left out."""
        data: dict[str, Any] = {"metric": self.metric, "unit": self.unit, "scope": self.scope}
        data["values"] = list(self.values)
        if self.source:
            data["source"] = self.source
        if self.notes:
            data["notes"] = dict(self.notes)
        if self.unavailable is not None:
            data["unavailable"] = self.unavailable
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measurement:
        """The inverse of `to_json`. Fills the instance directly: `__init__` took half the time of reading a run."""
        made = object.__new__(cls)
        own = made.__dict__
        own["metric"] = data["metric"]
        own["unit"] = data["unit"]
        own["values"] = tuple(data["values"])
        own["scope"] = data.get("scope", "total")
        own["source"] = data.get("source", "")
        own["notes"] = data.get("notes", {})
        own["unavailable"] = data.get("unavailable")
        return made


@dataclass(frozen=True, kw_only=True, repr=False)
class Environment:
    """Where a figure was taken. `facts` do not change while a run lasts; `state` (load, clocks) does."""

    facts: Mapping[str, Any]
    state: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Environment(fingerprint={self.fingerprint!r}, {len(self.facts)} facts)"

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits over the facts; two records with the same one ran in the same place."""
        text = json.dumps(self.facts, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """Plain data, as stored once per fingerprint."""
        return {"fingerprint": self.fingerprint, "facts": dict(self.facts), "state": dict(self.state)}


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """From what the number of rounds was chosen: so many first rounds, and the spread of their logarithms.

    `sd` is steadied by the other cases of the run, and known with `degrees` of freedom. The interval uses it too.
    """

    rounds: int
    sd: float
    degrees: float

    def to_json(self) -> dict[str, Any]:
        """Plain data, as stored in the records after the first stage."""
        return {"rounds": self.rounds, "sd": self.sd, "degrees": self.degrees}


@dataclass(frozen=True, kw_only=True, repr=False)
class Record:
    """What one case gave in one round. A failure is a record too: its status and reason say what happened.

    `lane` names the device on which one measurement ran after another, and `sequence` is the order in time within it:
    neighbours in one lane may be paired. A run on one machine has a single lane without a name. `started` is UTC,
    ISO 8601. `pilot` is there in the rounds that were added after a first stage.
    """

    case: Case
    round: int
    sequence: int
    status: Status
    reason: str = ""
    host: str = ""
    lane: str = ""
    measurements: tuple[Measurement, ...] = ()
    environment: str = ""
    started: str = ""
    wall_s: float = 0.0
    stop_reason: str = ""
    warnings: tuple[str, ...] = ()
    pilot: Pilot | None = None
    schema: int = SCHEMA

    def __repr__(self) -> str:
        about = f"round={self.round}, status={self.status!r}, {len(self.measurements)} measurements"
        return f"Record({self.case.label!r}, {about})"

    def find(self, metric_id: str, scope: str = "total") -> Measurement | None:
        """The measurement of a metric in a scope; None when there is none."""
        return self._by_metric.get((metric_id, scope))

    @cached_property
    def _by_metric(self) -> dict[tuple[str, str], Measurement]:
        return {(m.metric, m.scope): m for m in reversed(self.measurements)}

    @property
    def key(self) -> tuple[str, int]:
        """(case id, round): what resume goes by."""
        return self.case.id, self.round

    def to_json(self) -> dict[str, Any]:
        """Plain data: one line of `records.jsonl`."""
        return {
            "schema": self.schema,
            "id": self.case.id,
            "case": self.case.to_json(),
            "round": self.round,
            "sequence": self.sequence,
            "status": self.status,
            "reason": self.reason,
            "host": self.host,
            **({"lane": self.lane} if self.lane else {}),
            "environment": self.environment,
            "started": self.started,
            "wall_s": round(self.wall_s, 6),
            "stop_reason": self.stop_reason,
            "warnings": list(self.warnings),
            **({} if self.pilot is None else {"pilot": self.pilot.to_json()}),
            "measurements": [m.to_json() for m in self.measurements],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """The inverse of `to_json`, for data of the current schema."""
        return cls(
            case=Case.from_json(data["case"]),
            round=data["round"],
            sequence=data["sequence"],
            status=data["status"],
            reason=data.get("reason", ""),
            host=data.get("host", ""),
            lane=data.get("lane", ""),
            measurements=tuple(Measurement.from_json(m) for m in data.get("measurements", ())),
            environment=data.get("environment", ""),
            started=data.get("started", ""),
            wall_s=data.get("wall_s", 0.0),
            stop_reason=data.get("stop_reason", ""),
            warnings=tuple(data.get("warnings", ())),
            pilot=Pilot(**data["pilot"]) if "pilot" in data else None,
            schema=data["schema"],
        )


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one case may use in one round: wall seconds and GiB of memory; None is no limit.

    After `run_s` seconds of the whole run no adaptive round is begun.
    """

    time_s: float | None = None
    memory_gib: float | None = None
    run_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Skip:
    """A cell that the plan leaves out, with the reason."""

    case: Case
    reason: str
