"""How the samples of a case are taken: a union of frozen values. Records are comparable when their protocols are equal.

In JSON a protocol is one flat mapping: `mode` says which, and `find` that it is the trial of a search. The hashed text
of a case contains it, so what was read is written back as it was: `extra` keeps the keys of other versions, and
`absent` names the keys that were not there although they have a default here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

from speechmeter.core.live import TurnEnd
from speechmeter.core.quality import Quality

SCHEDULE = "schedule"
"""The mode of a protocol that goes through a schedule."""
USUAL_MARGIN = 0.05
"""Below the largest size that fits: what is left to fragmentation and to the next version of a library."""


@dataclass(frozen=True, kw_only=True)
class _Shared:
    """What every protocol has. `seed` is that of all random numbers; `filter` selects modules by name."""

    clock: str = "perf_counter_ns"
    sync: str = "both edges"
    seed: int = 0
    power_log: str | None = None
    filter: tuple[str, ...] = ()
    quality: Quality | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    mode: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as stored in a record; what is None is left out, except `memory_gib` of a search."""
        data: dict[str, Any] = {"clock": self.clock, "sync": self.sync, "seed": self.seed}
        if self.power_log is not None:
            data["power_log"] = self.power_log
        if self.filter:
            data["filter"] = list(self.filter)
        if self.mode:
            data["mode"] = self.mode
        own = {name: getattr(self, name) for name in _OWN[type(self)]}
        data.update({name: value for name, value in own.items() if value not in _UNSAID.get(name, ())})
        if "offsets_s" in data:
            data["offsets_s"] = list(data["offsets_s"])
        if self.quality is not None:
            data["quality"] = self.quality.to_json()
        return {**{key: value for key, value in data.items() if key not in self.absent}, **self.extra}


@dataclass(frozen=True, kw_only=True)
class SteadyProtocol(_Shared):
    """Calls until their time is steady, at most `warmup`; then `samples`, or as many as `budget_s` allows."""

    mode = "steady"
    warmup: int
    samples: int
    min_samples: int
    budget_s: float


@dataclass(frozen=True, kw_only=True)
class RepeatsProtocol(_Shared):
    """`samples` calls after `discard` that are dropped, the first call included."""

    mode = "repeats"
    discard: int
    samples: int


@dataclass(frozen=True, kw_only=True)
class ScheduleProtocol(_Shared):
    """The schedule of the classic profilers, in calls: `repeat` times wait, warm up, and keep the active ones."""

    mode = SCHEDULE
    wait: int
    warmup: int
    active: int
    repeat: int


@dataclass(frozen=True, kw_only=True)
class SearchProtocol(RepeatsProtocol):
    """A trial of a search: the first call, then one for each meter, with memory read in total alone.

    `find` is what is searched for, `margin` is left free below the largest that fits, `memory_gib` is the limit.
    """

    discard: int = 1
    samples: int = 1
    readings: int = 1
    find: str
    margin: float = USUAL_MARGIN
    memory_gib: float | None = None


CONSTANT, POISSON, GAMMA, RECORDED = "constant", "poisson", "gamma", "trace"
"""How conversations arrive at a rate: at equal intervals, at random, at random with bursts, as recorded."""
Phase = Literal["random", "aligned"]
"""When streams that run at once start: staggered by the seed over their first utterance, or all together."""


@dataclass(frozen=True, kw_only=True)
class LiveProtocol(_Shared):
    """Conversations with a system: each of the streams of a case holds them one after another.

    Pace, chunk and number of streams are axes of the case. `turn_end` says who ends a turn: the system itself; an
    `oracle`, which finishes `turn_delay_s` after the true end of speech; or a detector on the client, by its name
    `turn_vad`, after `turn_delay_s` without speech. `silence_s` is fed after each utterance. Where the system does not
    say that it is done, an answer is complete after `quiet_s` without an event; none is awaited for longer than
    `timeout_s` after the end of the audio. Each stream holds `turns` conversations (None: one with each utterance),
    or starts them until `duration_s` have passed. Before that, it holds one with each of the first `warmup_turns`
    utterances, which are not measured.

    With `arrivals`, conversations begin when they are due, whether or not earlier ones have ended: `turns` of them, or
    those of `duration_s`. It is `constant`, `poisson`, `gamma:BURSTINESS`, or `trace` with the moments `offsets_s`.
    Those of the first `ramp_s` seconds are not measured.

    With several `clients`, each is a process of its own that holds an equal share of the streams, or of the arrivals.
    """

    mode = "live"
    turn_end: TurnEnd
    turn_delay_s: float
    turn_vad: str
    silence_s: float
    quiet_s: float
    timeout_s: float
    phase: Phase
    turns: int | None
    duration_s: float | None
    warmup_turns: int
    arrivals: str = ""
    offsets_s: tuple[float, ...] = ()
    ramp_s: float = 0.0
    clients: int = 1


@dataclass(frozen=True, kw_only=True)
class OtherProtocol(_Shared):
    """One that nothing here takes samples by: of a newer version, or of figures that were not sampled call by call."""


Protocol: TypeAlias = (
    SteadyProtocol | RepeatsProtocol | ScheduleProtocol | SearchProtocol | LiveProtocol | OtherProtocol
)
_READ: Mapping[str, Any] = {"filter": tuple, "quality": Quality.from_json, "offsets_s": tuple}
_UNSAID: Mapping[str, tuple[Any, ...]] = {"arrivals": ("",), "offsets_s": ((),), "ramp_s": (0.0,), "clients": (1,)}
"""Values of keys that are left out, because they came later than the protocol."""


def protocol_from_json(data: Mapping[str, Any]) -> Protocol:
    """The protocol whose `to_json` is `data`."""
    kind = SearchProtocol if "find" in data else _BY_MODE.get(data.get("mode", ""), OtherProtocol)
    required, defaults = _KEYS[kind]
    if not required <= data.keys() or data.get("mode", "") != kind.mode:
        kind, (required, defaults) = OtherProtocol, _KEYS[OtherProtocol]
    read = {key: data[key] for key in data if key in required or key in defaults}
    read |= {key: convert(read[key]) for key, convert in _READ.items() if key in read}
    extra = {key: value for key, value in data.items() if key not in read and (key != "mode" or not kind.mode)}
    left_out = {"power_log", "filter", "quality", *_UNSAID}
    absent = frozenset(key for key in defaults if key not in data and key not in left_out)
    return kind(**read, extra=extra, absent=absent)


def differences(base: Protocol, new: Protocol) -> list[tuple[str, Any, Any]]:
    """(field, value in `base`, value in `new`) of every field in which two protocols differ; None where it is not."""
    old, fresh = base.to_json(), new.to_json()
    return [(key, old.get(key), fresh.get(key)) for key in {**old, **fresh} if old.get(key) != fresh.get(key)]


def _keys(kind: type[_Shared]) -> tuple[frozenset[str], frozenset[str]]:
    """(keys that a protocol of this kind needs, keys that have a default)."""
    named = [one for one in fields(kind) if one.name not in ("extra", "absent")]
    needed = frozenset(one.name for one in named if one.default is MISSING and one.default_factory is MISSING)
    return needed, frozenset(one.name for one in named) - needed


_KINDS: tuple[type[Protocol], ...] = (
    SteadyProtocol, RepeatsProtocol, ScheduleProtocol, SearchProtocol, LiveProtocol, OtherProtocol
)  # fmt: skip
_SHARED_FIELDS = {one.name for one in fields(_Shared)}
_OWN: Mapping[type[_Shared], tuple[str, ...]] = {
    kind: tuple(one.name for one in fields(kind) if one.name not in _SHARED_FIELDS) for kind in _KINDS
}
_KEYS = {kind: _keys(kind) for kind in _KINDS}
_BY_MODE = {kind.mode: kind for kind in _KINDS if kind is not SearchProtocol}


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Steps are numbered from 0 through all cycles. Those that wait or warm up are fed batches too, all in turn.

    A cycle is `lead` steps that are not kept (wait and warm-up), then `active` ones that are. There are `repeat` cycles
    over `batches` batches: step n is fed batch n modulo their number.
    """

    lead: int
    active: int
    repeat: int
    batches: int

    @classmethod
    def of(cls, protocol: Protocol, batches: int) -> Steps | None:
        """Those of a protocol over so many batches; None where it has no schedule."""
        if not isinstance(protocol, ScheduleProtocol):
            return None
        lead = protocol.wait + protocol.warmup
        return cls(lead=lead, active=protocol.active, repeat=protocol.repeat, batches=batches)

    def is_kept(self, step: int) -> bool:
        """Whether a step is a sample."""
        return step % (self.lead + self.active) >= self.lead

    @property
    def all(self) -> range:
        """Every step."""
        return range(self.repeat * (self.lead + self.active))

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The steps that are samples."""
        return tuple(step for step in self.all if self.is_kept(step))

    @cached_property
    def measured(self) -> tuple[int, ...]:
        """The batches of these, each once, in the order in which they are measured first."""
        return tuple(dict.fromkeys(step % self.batches for step in self.kept))

    @cached_property
    def indices(self) -> tuple[int, ...]:
        """For each sample the index of its batch among those that are measured."""
        index_of = {batch: index for index, batch in enumerate(self.measured)}
        return tuple(index_of[step % self.batches] for step in self.kept)

    @property
    def in_turn(self) -> bool:
        """Whether the samples go through the measured batches one after another, and so on again."""
        return in_turn(self.indices) == len(self.indices)

    def note(self) -> str:
        """What a reader must know where not every batch is measured; else nothing."""
        if len(self.measured) == self.batches:
            return ""
        cycle = self.lead + self.active
        spans = [(first + self.lead, first + cycle - 1) for first in self.all[::cycle]]
        steps = ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in spans[:_MOST_SPANS])
        more = ", …" if len(spans) > _MOST_SPANS else ""
        return f"schedule: steps {steps}{more} are measured, {len(self.measured)} of {self.batches} batches"


_MOST_SPANS = 4


def in_turn(indices: Sequence[int]) -> int:
    """How many of these come in turn: 0, 1, 2, … to the highest, and so on again."""
    count = next((at for at, index in enumerate(indices) if index != at), len(indices))
    return next((at for at, index in enumerate(indices) if index != at % count), len(indices))
