"""What a profile records and of which steps; the options have our names, torch's and those of SpeechBrain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from speechmeter.api.profiling.modules_in import given_modules
from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest

Phase = Literal["wait", "warmup", "active", "done"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Which steps are recorded. `skip_first` steps pass; then, `repeat` times, `wait` steps pass, `warmup` steps run
    under a profiler whose findings are dropped, and `active` steps are recorded.

    The first step is not recorded by default: it pays for what happens once.
    """

    wait: int = 0
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    skip_first: int = 0

    def __post_init__(self) -> None:
        if min(self.wait, self.warmup, self.skip_first) < 0 or min(self.active, self.repeat) < 1:
            raise InputError(
                f"schedule: wait {self.wait}, warmup {self.warmup}, active {self.active}, repeat {self.repeat}, "
                f"skip_first {self.skip_first} records nothing",
                fix="wait, warmup and skip_first must be 0 or more, active and repeat 1 or more",
            )

    @property
    def _cycle(self) -> int:
        return self.wait + self.warmup + self.active

    def phase(self, step: int) -> Phase:
        """What happens to a step, counted from 0."""
        step -= self.skip_first
        if step >= self._cycle * self.repeat:
            return "done"
        index = step % self._cycle
        if step < 0 or index < self.wait:
            return "wait"
        return "warmup" if index < self.wait + self.warmup else "active"

    def ends(self, step: int) -> bool:
        """Whether a recording ends with this step."""
        return (step - self.skip_first + 1) % self._cycle == 0


@dataclass(frozen=True, kw_only=True)
class TorchSchedule:
    """A schedule in torch's form: `action` gives the ProfilerAction of a step, as `torch.profiler.schedule` does."""

    action: Callable[[int], Any]

    def phase(self, step: int) -> Phase:
        """What happens to a step, counted from 0."""
        phases: dict[str, Phase] = {"NONE": "wait", "WARMUP": "warmup"}
        return phases.get(self.action(step).name, "active")

    def ends(self, step: int) -> bool:
        """Whether a recording ends with this step."""
        return bool(self.action(step).name == "RECORD_AND_SAVE")


@dataclass(frozen=True, kw_only=True)
class Export:
    """Where files are written after each recording; without a folder, into `profiles/<name>`.

    `worker_name` names the trace, which is otherwise named like the profile.
    """

    folder: Path | None = None
    worker_name: str | None = None
    use_gzip: bool = True


Handler = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Time by module, operator and kind is always recorded; the rest as asked for.

    `flops` are counted in the last warm-up step, because counting would slow down the steps whose time is reported.
    `shapes` of inputs are recorded with `memory` unless chosen. `on_trace_ready` are called with torch's profiler after
    each recording. `modules` are named by the user, `class_hooks` are the methods whose calls are steps.
    """

    memory: bool = False
    python_stacks: bool = False
    flops: bool = False
    shapes: bool | None = None
    gpu: bool = True
    schedule: Schedule | TorchSchedule = Schedule()
    export: Export | None = None
    on_trace_ready: tuple[Handler, ...] = ()
    name: str = ""
    modules: Mapping[str, Any] = field(default_factory=dict)
    class_hooks: tuple[str, ...] | None = None


PLAIN = Options()
ANALYST = Options(memory=True, python_stacks=True, flops=True, schedule=Schedule(warmup=2))
"""Everything. The second step counts FLOPs, so that the first can be used if no other ran."""
OPTIMISER = Options(memory=True)
"""Memory and modules."""

SCHEDULE_WORDS = tuple(Schedule.__dataclass_fields__)
EXPORT_WORDS = tuple(Export.__dataclass_fields__)
_SAME = {
    "profile_memory": "memory",
    "with_stack": "python_stacks",
    "with_flops": "flops",
    "record_shapes": "shapes",
    "dir_name": "folder",
}
"""Words of torch's profiler and of SpeechBrain's decorators, with ours."""
_PLAIN = ("memory", "python_stacks", "flops", "shapes", "name")
PROFILE_WORDS = (
    *_PLAIN, "modules", "class_hooks", "activities", "with_modules", "schedule", "on_trace_ready",
    *SCHEDULE_WORDS, *EXPORT_WORDS,
)  # fmt: skip


def in_our_words(given: Mapping[str, Any], words: Iterable[str], of: str) -> dict[str, Any]:
    """Keywords by our names, without those that are None. Raises InputError for a keyword that `of` does not have."""
    known = list(words)
    others = [word for word, ours in _SAME.items() if ours in known]
    found: dict[str, Any] = {}
    for word, value in given.items():
        ours = _SAME.get(word, word)
        if ours not in known:
            raise InputError(f"{of} has no option {word!r}", fix=nearest(word, [*known, *others]))
        if value is None:
            continue
        if found.get(ours, value) != value:
            raise InputError(f"{ours} and {word} are the same option of {of}", fix="give only one of them")
        found[ours] = value
    return found


def options_from(base: Options, given: Mapping[str, Any]) -> Options:
    """The options with what keywords of `profile` say. Raises InputError for a keyword or a value it does not take."""
    found = in_our_words(given, PROFILE_WORDS, "profile")
    changes: dict[str, Any] = {word: found[word] for word in _PLAIN if word in found}
    numbers = {word: found[word] for word in SCHEDULE_WORDS if word in found}
    if "schedule" in found or numbers:
        changes["schedule"] = _schedule(found.get("schedule"), numbers)
    elif found.get("flops") and not base.flops:
        changes["schedule"] = ANALYST.schedule
    if any(word in found for word in EXPORT_WORDS):
        changes["export"] = export_from(found)
    if "on_trace_ready" in found:
        given_handlers = found["on_trace_ready"]
        handlers = tuple(given_handlers) if isinstance(given_handlers, list | tuple) else (given_handlers,)
        wrong = next((one for one in handlers if not callable(one)), None)
        if wrong is not None:
            raise InputError(f"on_trace_ready: {wrong!r} is not callable", fix="give a function")
        changes["on_trace_ready"] = handlers
    if "modules" in found:
        changes["modules"] = given_modules(found["modules"])
    if "class_hooks" in found:
        names = found["class_hooks"]
        changes["class_hooks"] = (names,) if isinstance(names, str) else tuple(names)
    if "activities" in found:
        activities = {getattr(one, "name", str(one)).upper() for one in found["activities"]}
        if "CPU" not in activities:
            raise InputError(
                "activities: CPU is missing; it cannot be switched off", fix="add torch.profiler.ProfilerActivity.CPU"
            )
        changes["gpu"] = len(activities) > 1
    return replace(base, **changes)


def export_from(found: Mapping[str, Any]) -> Export:
    """The files to write, from options of `export`."""
    chosen = {word: found[word] for word in EXPORT_WORDS if word in found}
    return Export(**{**chosen, "folder": Path(chosen["folder"]) if "folder" in chosen else None})


def _schedule(given: Any, numbers: Mapping[str, int]) -> Schedule | TorchSchedule:
    if given is None:
        return Schedule(**numbers)
    if numbers:
        raise InputError(f"schedule and {min(numbers)} cannot be combined", fix=f"put {min(numbers)} into the schedule")
    if isinstance(given, Schedule):
        return given
    if not callable(given):
        raise InputError(f"{given!r} is not a schedule", fix="use schedule=speechmeter.schedule(wait=1, active=2)")
    return TorchSchedule(action=given)
