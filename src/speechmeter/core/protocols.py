"""What a plug-in answers for itself. The engine knows these and nothing else of any subject, workload or meter.

Entry-point groups: `speechmeter.subjects`, `speechmeter.workloads`, `speechmeter.meters`. An entry point names a
class without constructor arguments; built-ins are registered the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from speechmeter.core.axes import Axis, Option
from speechmeter.core.live import Live
from speechmeter.core.metrics import Metric
from speechmeter.core.outputs import Keep, Output
from speechmeter.core.types import Batch, Case, Measurement, Stage

SOUND, FEATURES, TEXT, SHAPES = "sound", "features", "text", "shapes"
"""Kinds of input."""


@dataclass(frozen=True, kw_only=True)
class Fed:
    """What a workload feeds: one kind of input, several where that is open, none where it is unknown.

    `bands` are those of features, where known.
    """

    kinds: tuple[str, ...] = ()
    bands: int | None = None


def _nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True, repr=False)
class Prepared:
    """A model that is loaded and ready: its stages, its torch modules by name, `sync` for its device, and `close`.

    `live` says how to hold a conversation with it; None for a model that takes whole inputs. A model that is only live
    has no stages. `notes` are facts that a reader must know (random weights, a fixed output length).
    `data_dependent` says that the cost of a call depends on the content, so figures on noise are misleading. `found`
    has measurements that were made while preparing, for the meter that reports them. `inside` returns the seconds that
    the model itself reports for its latest call, as `total` and by names of its own. The output of the last stage is
    stored if it is text (a str for each item), token ids (a list for each item) or `Speech`.
    """

    stages: tuple[Stage, ...] = ()
    live: Live | None = None
    modules: Mapping[str, Any] = field(default_factory=dict)
    sync: Callable[[], None] = _nothing
    close: Callable[[], None] = _nothing
    notes: tuple[str, ...] = ()
    data_dependent: bool = False
    found: tuple[Measurement, ...] = ()
    inside: Callable[[], Mapping[str, float]] | None = None

    def __repr__(self) -> str:
        return f"Prepared(stages={[stage.name for stage in self.stages]})"


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Which of the calls made by `Session.collect` are samples (the others were warm-up), and why it stopped.

    `indices` has for each sample the index of its batch in `Session.batches`; it is empty where they come in turn.
    """

    kept: tuple[bool, ...]
    stop_reason: str
    indices: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of the things that a plug-in offers by name behind its colon: version, or the reason why it is absent."""

    source: str
    summary: str
    version: str = ""
    missing: str | None = None


@dataclass(frozen=True, kw_only=True)
class Installed:
    """Whether a plug-in can run here: its version, or the reason why not and how to get it.

    `choices` are listed one by one where a plug-in is several things with a presence of their own.
    """

    version: str = ""
    missing: str | None = None
    choices: tuple[Choice, ...] = ()


@runtime_checkable
class Subject(Protocol):
    """What is measured."""

    summary: str
    """One line for `speechmeter models`."""
    axes: tuple[Axis, ...]
    """Axes beyond the core's that a plan may sweep for this subject."""
    options: tuple[Option, ...]
    """What an entry of `models:` may have beside `name` and `load`."""
    takes: tuple[str, ...]
    """Kinds of input that it takes (`SOUND`, `FEATURES`, `TEXT`, `SHAPES`); empty where it takes any."""
    runs_code: bool
    """True when loading executes code that the plan names; such a subject needs the `--trust` rule."""

    def installed(self) -> Installed:
        """Version, or why it is absent. Must not import heavy packages."""
        ...

    def check(self, case: Case) -> None:
        """Raise InputError for a model that cannot exist. Runs in preflight: no heavy import, no code of the model."""
        ...

    def unavailable(self, case: Case) -> str | None:
        """Why this case cannot be measured here although the input is sound; None when it can."""
        ...

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load everything and return the chain of stages; the first stage gets a Batch."""
        ...


@runtime_checkable
class ForkableSubject(Subject, Protocol):
    """A subject whose measuring processes may be forked from one that has imported its libraries."""

    def libraries(self, case: Case) -> tuple[str, ...]:
        """Modules to import before the fork; none where processes of this case are to be started anew.

        `module:name` gets a name of a module too, of libraries that import their parts when they are asked for.
        Importing them makes no tensor, reads no file of the case and starts no thread but those of numpy's BLAS.
        """
        ...


@runtime_checkable
class LiveSubject(Subject, Protocol):
    """A subject that can also be measured live: what it prepares for a live case has `live`."""

    def not_live(self, case: Case) -> str | None:
        """Why this case cannot be measured live, and what to do instead; None when it can. Runs in preflight."""
        ...


@runtime_checkable
class ServedSubject(LiveSubject, Protocol):
    """A live subject that several client processes can speak to at once, because it runs in none of them."""

    def check_clients(self, case: Case) -> None:
        """Raise SubjectError where a case with several clients cannot be measured. Runs in preflight."""
        ...


@runtime_checkable
class Workload(Protocol):
    """What a subject is fed."""

    axes: tuple[Axis, ...]
    """Axes that a plan may sweep with this workload."""
    options: tuple[Option, ...]
    """What `workload:` may have beside `name`."""

    def check(self, case: Case) -> None:
        """Raise InputError for data that cannot be used. Runs in preflight."""
        ...

    def feeds(self, case: Case) -> Fed:
        """What it feeds in this case. Runs in preflight; InputError for data that cannot be used."""
        ...

    def batches(self, case: Case) -> Iterable[Batch]:
        """The batches of one pass, the same ones on every call.

        `core.batches.Batches` are used as they are, each one read when its turn comes, and report what was left out;
        anything else is made at once and held.
        """
        ...


class Session(Protocol):
    """A loaded case, as a meter sees it."""

    @property
    def case(self) -> Case:
        """What is measured."""
        ...

    @property
    def prepared(self) -> Prepared:
        """The loaded subject."""
        ...

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The chain with its clocked flags as the case's boundary sets them."""
        ...

    @property
    def batches(self) -> Sequence[Batch]:
        """What is measured: all that the workload gave or, of a schedule, the batches of its active steps."""
        ...

    @property
    def all_batches(self) -> Sequence[Batch]:
        """All that the workload gave: what is scored, and what a schedule goes through."""
        ...

    @property
    def first_ns(self) -> int:
        """How long the first call took; meters judge by it what a call costs. 0 when none was made."""
        ...

    @property
    def refused(self) -> str:
        """Why an earlier way of opening the case failed; empty when none did."""
        ...

    @property
    def earlier(self) -> Sequence[Measurement]:
        """What an earlier way found, where it is taken once more in this one to be checked; else empty."""
        ...

    @property
    def keep(self) -> Keep:
        """The folder for files of this case, which the first writer makes; None where none are kept."""
        ...

    @property
    def shared(self) -> dict[str, Any]:
        """What meters of one process leave for each other, by name: a recording that several of them read."""
        ...

    @property
    def resident_loaded_bytes(self) -> int | None:
        """Resident size of the process and of those it started, right after loading; None where it cannot be read."""
        ...

    def call(self, batch: Batch) -> list[Any]:
        """Run the chain once, iterators drained; outputs per stage."""
        ...

    def outputs(self) -> Sequence[Output]:
        """What a call with each of all batches puts out, from one pass outside every clock; empty without any."""
        ...

    def sync(self) -> None:
        """Wait for the device."""
        ...

    def collect(self, sample: Callable[[Batch], int]) -> Collected:
        """Call `sample` (one timed call, returning its nanoseconds) as often as the case's protocol asks."""
        ...

    def progress(self, what: str) -> None:
        """Report progress to whoever watches."""
        ...


def _never(found: Sequence[Measurement]) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a case may be opened: a context that holds while the subject is built and called.

    A way that is not `warm` makes no first call before the meters. `check_next` decides from what was found whether the
    next way is tried too: its figures then replace these, and the meter compares both.
    """

    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    warm: bool = True
    check_next: Callable[[Sequence[Measurement]], bool] = _never


ORDINARY = (Way(),)


class Phase(Enum):
    """What a meter does to its process. `engine.phases` decides from it which meters share one, and their order."""

    COUNT = "count"
    """Counts on shapes alone, in a process that all such meters share. If it fails, only its figures are missing."""
    TIMING = "timing"
    """Reads the subject as it runs, in the process that is timed, in a pass of its own. This is the usual phase."""
    MEMORY = "memory"
    """On the CPU in a process of its own, named after the meter, with its `environ`; on CUDA in the timed process."""
    PROFILE = "profile"
    """Records what runs, which slows what follows: in a process that profilers share and in which nothing is timed."""


@runtime_checkable
class Meter(Protocol):
    """What is read off. A class that derives from it gets what most meters answer."""

    name: str
    metrics: tuple[Metric, ...]
    """Definitions of everything it can return."""
    environ: Mapping[str, str] = MappingProxyType({})
    """Environment variables that a process other than the timed one is started with. With any, it is not inline."""
    ways: tuple[Way, ...] = ORDINARY
    """Ways to open the case outside the timed process, tried in order until one works; the same in one process."""
    phase: Phase = Phase.TIMING
    """What it does to its process; the engine decides from it where and when the meter runs."""

    def unavailable(self, case: Case) -> str | None:
        """Why it cannot measure this case; None when it can."""
        return None

    def measure(self, session: Session) -> list[Measurement]:
        """Readings of one pass of its own."""
        ...


@runtime_checkable
class WatchingMeter(Meter, Protocol):
    """A meter that can also watch a case that is measured live, while others talk to the subject."""

    def watching(self, case: Case, live: Live) -> AbstractContextManager[list[Measurement]]:
        """Watch the system for as long as the context lasts; afterwards its list has the readings."""
        ...
