"""The shape of a plan. A key that is not here is an axis that a plug-in declares, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from speechmeter.core.axes import OFFLINE
from speechmeter.core.durations import seconds_of
from speechmeter.core.errors import PlanError
from speechmeter.core.finding import TARGETS
from speechmeter.core.outputs import SpeechFiles, TraceOptions
from speechmeter.core.plugins import default_name, nearest
from speechmeter.core.protocol import USUAL_MARGIN
from speechmeter.core.slo import read_slo
from speechmeter.core.types import Limits
from speechmeter.plan.source import KeyPath, Source


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _by_device(value: Any) -> Any:
    """`A100` as {cpu: A100, cuda: A100}."""
    return {"cpu": value, "cuda": value} if isinstance(value, str) else value


def _share(value: Any) -> Any:
    """`5%` as 0.05."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return float(value.strip()[:-1]) / 100
    return value


def _slo(value: Any) -> Any:
    """`a=1,b=99%` as {a: 1, b: 99%}."""
    return read_slo(value) if isinstance(value, str) else value


Count = Annotated[int, Field(strict=True, ge=1)]
CountOrZero = Annotated[int, Field(strict=True, ge=0)]
Seconds = Annotated[float, BeforeValidator(seconds_of), Field(strict=True, gt=0, le=86_400, allow_inf_nan=False)]
SecondsOrZero = Annotated[float, BeforeValidator(seconds_of), Field(strict=True, ge=0, le=86_400, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Word = Annotated[str, Field(strict=True, min_length=1)]
View = Literal[
    "rtf", "latency", "memory", "parameters", "flops", "energy", "stages", "summary", "cascades", "utterances",
    "operators", "split",
]  # fmt: skip
"""Tables that a run can write into its directory."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelEntry(BaseModel):
    """One entry of `models:`; keys beside `name`, `load` and `axes` are options of its plug-in.

    `axes` are values of axes for this model alone, in place of the plan's. `interpreter` is the Python interpreter that
    measures it, where that is not this one; it is no part of the identity of its cases.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    name: Word
    load: Word
    axes: dict[str, Any] = Field(default_factory=dict)
    interpreter: Word | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"load": value, "name": default_name(value)}
        if isinstance(value, dict) and isinstance(value.get("load"), str):
            return {"name": default_name(value["load"]), **value}
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            return {"load": value["name"], **value}
        return value


class WorkloadEntry(BaseModel):
    """`workload:`: a plug-in's name and its options."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: Word = "audio"

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class ScheduleEntry(_Part):
    """`schedule:` of the classic profilers, in calls."""

    wait: CountOrZero = 0
    warmup: CountOrZero = 0
    active: Count
    repeat: Count = 1


class LimitsEntry(_Part):
    """`limits:` of one case in one round, and of the whole run (`run_s`: no adaptive round is begun after it)."""

    time_s: Positive | None = 600.0
    memory_gib: Positive | None = None
    run_s: Positive | None = None

    def value(self) -> Limits:
        """The limits as the core's type."""
        return Limits(time_s=self.time_s, memory_gib=self.memory_gib, run_s=self.run_s)


class QualityEntry(_Part):
    """`quality:`: how outputs are scored, or a file with scores that were taken elsewhere."""

    normaliser: (
        Literal["english", "basic", "none", "english.v1", "english.v2", "basic.v1", "basic.v2", "none.v1"] | None
    ) = None
    scores: (
        Annotated[
            tuple[Literal["wer", "cer", "bleu", "chrf", "wer-open-asr"], ...],
            BeforeValidator(_as_list),
            Field(min_length=1),
        ]
        | None
    ) = None
    import_: Word | None = Field(default=None, alias="import")


class TraceEntry(_Part):
    """`trace:` with options: how many steps are recorded, whether with Python's stacks, how many events are kept."""

    steps: Annotated[int, Field(strict=True, ge=1, le=20)] = 1
    python_stacks: Flag = False
    most_events: Annotated[int, Field(strict=True, ge=1000)] = 200_000


class TuneEntry(_Part):
    """`tune:`: what is tuned for, what must be kept, which axes are tried, and how long it may take.

    The first value of an axis is the default that all others are compared with.
    """

    goal: Literal["rtfx", "latency", "memory", "energy", "cost"]
    keep: Annotated[tuple[Word, ...], BeforeValidator(_as_list)] = ()
    over: Annotated[tuple[Word, ...], BeforeValidator(_as_list)] | None = None
    min_effect: Annotated[float, BeforeValidator(_share), Field(gt=0, lt=1)] = 0.05
    within: Seconds | None = None
    price: Positive | None = None


class SpeechEntry(_Part):
    """`save_speech:` with options: how the names of the files begin, and their sampling rate in Hz."""

    prefix: Annotated[str, Field(strict=True, max_length=40)] = ""
    rate: Annotated[int, Field(strict=True, ge=1000, le=384_000)] | None = None


class Plan(_Part):
    """A validated study. `axes` holds every swept value by axis name."""

    name: Word = "run"
    models: Annotated[tuple[ModelEntry, ...], BeforeValidator(_as_list), Field(min_length=1)]
    workload: WorkloadEntry = WorkloadEntry()
    audio: Annotated[tuple[Word, ...], BeforeValidator(_as_list), Field(min_length=1)] | None = None
    meters: Annotated[tuple[Word, ...], BeforeValidator(_as_list)] = (
        "latency",
        "memory",
        "parameters",
    )
    rounds: Count | Literal["auto"] = "auto"
    precision: Annotated[float, BeforeValidator(_share), Field(gt=0, le=1)] = 0.05
    min_rounds: Annotated[int, Field(strict=True, ge=5)] = 5
    max_rounds: Annotated[int, Field(strict=True, ge=5)] = 20
    warmup: CountOrZero = 30
    samples: Count = 10
    min_samples: Count = 2
    budget_s: Positive = 20.0
    repeats: Count | None = None
    discard: CountOrZero = 1
    schedule: ScheduleEntry | None = None
    limits: LimitsEntry = LimitsEntry()
    kind: Annotated[Mapping[Literal["cpu", "cuda"], Word], BeforeValidator(_by_device)] = Field(default_factory=dict)
    triangle: Flag = False
    power_log: Word | None = None
    save_speech: Flag | SpeechEntry = False
    trace: Flag | TraceEntry = False
    markdown: Annotated[tuple[View, ...], BeforeValidator(_as_list)] = ()
    filter: Annotated[tuple[Word, ...], BeforeValidator(_as_list)] = ()
    quality: QualityEntry | None = None
    find: Literal["max-batch", "max-seconds", "max-frames", "max-streams", "max-rate"] | None = None
    find_most: Positive | None = None
    find_within: Annotated[float, BeforeValidator(_share), Field(ge=0, lt=1)] | None = None
    tune: TuneEntry | None = None
    find_margin: Annotated[float, BeforeValidator(_share), Field(ge=0, lt=1)] = USUAL_MARGIN
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32)] = 0
    turn_end: Word = "system"
    silence: SecondsOrZero = 2.0
    quiet: Seconds = 3.0
    answer_timeout: Seconds = 30.0
    phase: Literal["random", "aligned"] = "random"
    turns: Count | None = None
    duration: Seconds | None = None
    warmup_turns: CountOrZero = 1
    clients: Count = 1
    arrivals: Any = None
    """A word or a list of start times; `plan.arrivals` checks it."""
    ramp: SecondsOrZero = 0.0
    prebuffer: SecondsOrZero = 0.0
    heard_by: ModelEntry | None = None
    interrupt: Seconds | None = None
    slo: Annotated[Mapping[str, str | float] | None, BeforeValidator(_slo)] = None
    axes: Mapping[str, tuple[Any, ...]] = Field(default_factory=dict)

    def trace_options(self) -> TraceOptions:
        """How traces are recorded, where they are."""
        return TraceOptions(**self.trace.model_dump()) if isinstance(self.trace, TraceEntry) else TraceOptions()

    def speech_files(self) -> SpeechFiles | None:
        """How sound that models make is written; None where it is not."""
        if isinstance(self.save_speech, SpeechEntry):
            return SpeechFiles(**self.save_speech.model_dump())
        return SpeechFiles() if self.save_speech else None

    @property
    def interpreters(self) -> dict[str, str]:
        """The interpreters that measure models in place of this one, by the name of the model."""
        return {entry.name: entry.interpreter for entry in self.models if entry.interpreter is not None}

    @property
    def is_live(self) -> bool:
        """Whether it has cases that are measured live."""
        paces = [*self.axes.get("pace", ()), *(pace for one in self.models for pace in one.axes.get("pace", ()))]
        return any(pace != OFFLINE for pace in paces)

    def to_plain(self) -> dict[str, Any]:
        """The plan as YAML would hold it, every default written out; reading it back gives this plan."""
        unused = () if self.is_live else LIVE_KEYS
        untuned = () if self.tune is not None else ("tune",)
        data = self.model_dump(exclude={"axes", *unused, *untuned}, mode="json", by_alias=True)
        for entry in data["models"]:
            for key in ("axes", "interpreter"):
                if not entry[key]:
                    del entry[key]
        if data.get("heard_by"):
            del data["heard_by"]["interpreter"]  # it hears where the model is measured
        return {**data, **{name: list(values) for name, values in self.axes.items()}}


LIVE_KEYS = ("turn_end", "silence", "quiet", "answer_timeout", "phase", "turns", "duration", "warmup_turns",
             "clients", "arrivals", "ramp", "prebuffer", "heard_by", "interrupt", "slo")  # fmt: skip
"""Keys that say how conversations are held, beside the axes of live cases."""
_EXAMPLES = {
    "turn_end": "for example `turn_end: oracle:200ms`",
    "silence": "for example `silence: 2s`",
    "quiet": "for example `quiet: 3s`",
    "answer_timeout": "for example `answer_timeout: 30s`",
    "duration": "for example `duration: 60s`",
    "ramp": "for example `ramp: 10s`",
    "prebuffer": "for example `prebuffer: 100ms`",
    "heard_by": "for example `heard_by: pocketsphinx`",
    "interrupt": "for example `interrupt: 1s`",
    "slo": "for example `slo: {final_delay_p95_s: 0.8, live_completeness: 99%, keep_up: 0.01}`",
    "models": "for example `models: [log-mel]`",
    "meters": "for example `meters: [latency, memory]`",
    "limits": "for example `limits: {time_s: 120, memory_gib: 8}`",
    "schedule": "for example `schedule: {wait: 10, warmup: 10, active: 20, repeat: 2}`",
    "kind": "for example `kind: A100` or `kind: {cuda: A100, cpu: laptop}`",
    "audio": "use a sound file, `sample` or `noise`",
    "workload": "for example `workload: audio`",
    "trace": "for example `trace: true` or `trace: {steps: 3}`",
    "save_speech": "for example `save_speech: true` or `save_speech: {prefix: dev, rate: 16000}`",
    "quality": "for example `quality: {normaliser: english, scores: [wer, cer]}` or `quality: {import: scores.csv}`",
    "tune": "for example `tune: {goal: rtfx, keep: 'wer<=+0.3', over: [threads, batch], within: 20min}`",
    "filter": "for example `filter: [encoder.*]`",
    "markdown": "for example `markdown: [rtf, memory]`",
}
_SWITCHES: dict[str | int, type[BaseModel]] = {"trace": TraceEntry, "save_speech": SpeechEntry}
"""Keys that are true, false, or a mapping of options."""
_PARTS: dict[str | int, type[BaseModel]] = {
    "limits": LimitsEntry,
    "schedule": ScheduleEntry,
    "quality": QualityEntry,
    "tune": TuneEntry,
    **_SWITCHES,
}
_SHARES: dict[str | int, str] = {
    "precision": "between 0 and 1",
    "find_within": "of at least 0 and below 1",
    "find_margin": "of at least 0 and below 1",
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a word",
    "tuple": "a list",
    "model": "a mapping",
}


def explain(error: ValidationError, source: Source) -> PlanError:
    """The first finding as a PlanError."""
    findings = error.errors(include_url=False)
    finding, path = findings[0], tuple(findings[0]["loc"])
    if path[0] in _SWITCHES:  # pydantic names each form that was tried: it is the mapping that has keys to be wrong
        tried = [one for one in findings if one["loc"][0] == path[0] and one["loc"][1] != "bool"]
        finding = tried[0] if isinstance(source.data.get(str(path[0])), dict) and tried else finding
        path = (path[0], *finding["loc"][2:])
    key = ".".join(str(part) for part in path)
    slip = get_close_matches(key, [str(given) for given in source.data if given not in Plan.model_fields], n=1)
    if finding["type"] == "missing" and slip:  # `model:` for `models:`
        return PlanError(f"unknown key {slip[0]!r}", where=source.origin((slip[0],)), fix=f"did you mean {key!r}?")
    what, fix = _words(finding, path, key)
    return PlanError(what, where=source.origin(path), fix=fix)


def empty(key: str, source: Source) -> PlanError:
    """What to raise for a list that must hold something."""
    return PlanError(f"{key} is empty", where=source.origin((key,)), fix=_EXAMPLES[key])


def _words(finding: Any, path: KeyPath, key: str) -> tuple[str, str]:
    kind, value, context = finding["type"], finding["input"], finding.get("ctx", {})
    fix = _EXAMPLES.get(str(path[0]), f"for example `{path[0]}: {_default(str(path[0]))}`")
    if kind == "missing":
        return (f"{key} is missing", fix)
    if kind == "extra_forbidden":
        part = _PARTS.get(path[0], Plan)
        keys = [field.alias or name for name, field in part.model_fields.items()]
        return (f"unknown key {path[-1]!r} in {path[0]}", nearest(str(path[-1]), keys))
    if kind == "too_short":
        return (f"{path[0]} is empty", fix)
    if kind == "finite_number":
        return (f"{key} must be finite, not {value!r}", fix)
    if path[0] == "find":
        return (f"there is no search {value!r}", nearest(str(value), list(TARGETS)))
    if kind == "literal_error" and path[0] == "quality":
        return (f"{key} takes {context['expected']}, not {value!r}", fix)
    if kind == "greater_than":
        return (f"{key} must be greater than {context['gt']:g}, not {value!r}", fix)
    if path[0] == "rounds":
        return (f"rounds takes `auto` or a whole number from 1 on, not {value!r}", "for example `rounds: 5`")
    if path[0] in _SHARES:
        return (f"{path[0]} takes a fraction {_SHARES[path[0]]}, not {value!r}", f"for example `{path[0]}: 5%`")
    if kind == "less_than":
        return (f"{key} must be less than {context['lt']:g}, not {value!r}", fix)
    if kind == "greater_than_equal":
        return (f"{key} must be at least {context['ge']:g}, not {value!r}", fix)
    expected = _KINDS.get(kind.partition("_")[0])
    if expected:
        return (f"{key} takes {expected}, not {value!r}", fix)
    return (f"{key}: {finding['msg']}", fix)


def _default(key: str) -> Any:
    field = Plan.model_fields.get(key)
    value = field.default if field is not None else "…"
    return "10" if value is None else str(value).lower() if isinstance(value, bool) else value
