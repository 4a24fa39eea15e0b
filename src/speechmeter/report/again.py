"""The command that measures a case again: flags from which `speechmeter run` makes the very same case."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from speechmeter.core.axes import CORE_AXES, SHARED_AXES
from speechmeter.core.finding import target_of
from speechmeter.core.plugins import default_name, joined_name, split_interpreter
from speechmeter.core.printable import one_line
from speechmeter.core.protocol import (
    POISSON,
    RECORDED,
    LiveProtocol,
    RepeatsProtocol,
    ScheduleProtocol,
    SearchProtocol,
    SteadyProtocol,
)
from speechmeter.core.quality import IMPORT, NORMALISERS, QUALITY, Quality
from speechmeter.core.stated import MODE
from speechmeter.core.types import CONTENT_HASHES, VARIANT, Case, Spec

_FLAGS = ("seconds", "batch", "device", "dtype", "threads", "cores", "compile", "deterministic", "boundary")
_DEFAULTS = {axis.name: axis.default for axis in (*CORE_AXES, *SHARED_AXES)}
_STEADY = {"warmup": 30, "samples": 10, "min_samples": 2, "budget_s": 20.0}
"""What a plan that is silent asks for; `tests/unit/report/test_again.py` holds this to the plan's own defaults."""
_LIVE = {
    "turn_end": "system", "silence": 2.0, "quiet": 3.0, "answer_timeout": 30.0, "phase": "random", "turns": None,
    "duration": None, "warmup_turns": 1, "clients": 1, "prebuffer": 0.0, "heard_by": None, "interrupt": None,
    "arrivals": None, "ramp": 0.0,
}  # fmt: skip
"""The same of a live case."""
_WORD = re.compile(r"\+?[a-z]{2,}[a-z0-9:-]*[a-z0-9](?<!null)(?<!true)(?<!false)(?<!yes)(?<!no)(?<!on)(?<!off)")
"""Text that YAML reads as itself; the library is asked about any other, which takes long for thousands of cases."""
_SCHEDULE = ("wait", "warmup", "active", "repeat")


def command(case: Case, rounds: int, interpreter: str | None = None) -> str:
    """One line for a shell. Paths are as the plan gave them: relative ones start where the run was started.

    `interpreter` is the one that measured the model, where that is not the launcher's own. Of a case that another tool
    measured, it is a comment that says so.
    """
    if case.protocol.extra.get("mode") == MODE:
        return f"# measured with {one_line(str(case.protocol.extra.get('tool', 'another tool')))}, and imported"
    words = ["speechmeter", "run", *_model(case.subject, interpreter), *_workload(case.workload), *_axes(case.axes)]
    meters = ["--meters", ",".join(case.meters)] if case.meters else ["--set", "meters=[]"]
    words += [*_protocol(case), *meters, "--rounds", str(max(1, rounds))]
    return shlex.join(words)


def _model(subject: Spec, interpreter: str | None) -> list[str]:
    load = f"{subject.plugin}:{subject.source}" if subject.source else subject.plugin
    at = "" if interpreter is None else f"@{interpreter}"
    if not subject.options and split_interpreter(load + at) == (load, interpreter):
        if default_name(load) == subject.name:
            return ["--model", load + at]
        if (named := joined_name(subject.name, load)) is not None:
            return ["--model", named + at]
    by = {} if interpreter is None else {"interpreter": interpreter}
    return ["--set", _setting("models", [{"name": subject.name, "load": load, **by, **subject.options}])]


def _workload(workload: Spec) -> Iterator[str]:
    options = {key: value for key, value in workload.options.items() if key not in CONTENT_HASHES}
    if workload.plugin == "audio" and workload.source != "noise":
        yield from ("--audio", workload.source)
    if workload.plugin != "audio" or options:
        yield from ("--set", _setting("workload", {"name": workload.plugin, **options}))


def _axes(axes: Mapping[str, Any]) -> Iterator[str]:
    for name, value in axes.items():
        if value is None or name == VARIANT or (name in _DEFAULTS and value == _DEFAULTS[name]):
            continue
        if name in _FLAGS:
            yield from (f"--{name}", _plain(value))
        else:
            yield from ("--set", _setting(name, [value]))


def _protocol(case: Case) -> Iterator[str]:
    protocol = case.protocol
    settings: dict[str, Any] = {}
    if isinstance(protocol, SearchProtocol) and (target := target_of(case)) and case.axes.get(target.axis) is not None:
        settings = _trial(protocol, case.axes[target.axis])
    elif isinstance(protocol, RepeatsProtocol):
        settings = {"repeats": protocol.samples, "discard": protocol.discard}
    elif isinstance(protocol, ScheduleProtocol):
        settings = {"schedule": {key: getattr(protocol, key) for key in _SCHEDULE}}
    elif isinstance(protocol, LiveProtocol):
        settings = _conversations(protocol)
    elif isinstance(protocol, SteadyProtocol):
        settings = {key: value for key, usual in _STEADY.items() if (value := getattr(protocol, key)) != usual}
    if protocol.seed:
        settings["seed"] = protocol.seed
    if protocol.power_log:
        settings["power_log"] = protocol.power_log
    if protocol.filter:
        settings["filter"] = list(protocol.filter)
    if protocol.quality is not None:
        settings[QUALITY] = _quality(protocol.quality)
    for key, value in settings.items():
        yield from ("--set", _setting(key, value))


def _conversations(protocol: LiveProtocol) -> dict[str, Any]:
    """How conversations are held, in the keys of a plan."""
    after = f"{_plain(protocol.turn_delay_s)}s"
    delay = {"oracle": f":{after}", "client-vad": f":{protocol.turn_vad}:{after}"}
    named = None if protocol.arrivals in ("", POISSON) else protocol.arrivals
    given = {
        "turn_end": protocol.turn_end + delay.get(protocol.turn_end, ""), "silence": protocol.silence_s,
        "quiet": protocol.quiet_s, "answer_timeout": protocol.timeout_s, "phase": protocol.phase,
        "turns": protocol.turns, "duration": protocol.duration_s, "warmup_turns": protocol.warmup_turns,
        "prebuffer": protocol.prebuffer_s, "heard_by": dict(protocol.heard_by) or None,
        "interrupt": protocol.interrupt_s,
        "clients": protocol.clients, "ramp": protocol.ramp_s,
        "arrivals": list(protocol.offsets_s) if named == RECORDED else named,
    }  # fmt: skip
    return {key: value for key, value in given.items() if value != _LIVE[key]}


def _trial(protocol: SearchProtocol, size: float) -> dict[str, Any]:
    """A search that goes no further than the size of this trial, and so begins with it."""
    settings: dict[str, Any] = {"find": protocol.find, "find_most": size, "find_margin": protocol.margin}
    if protocol.memory_gib is not None:
        settings["limits"] = {"memory_gib": protocol.memory_gib}
    return settings


def _quality(asked: Quality) -> dict[str, Any]:
    if asked.import_ is not None:
        return {IMPORT: asked.import_}
    names = {versioned: name for name, versioned in NORMALISERS.items()}
    normaliser = asked.normaliser or ""
    return {"normaliser": names.get(normaliser, normaliser), "scores": list(asked.scores)}


def _setting(key: str, value: Any) -> str:
    """Text with a comma is quoted: without quotes it would be a list."""
    return (
        f"{key}={json.dumps(value, ensure_ascii=False) if isinstance(value, str) and ',' in value else _plain(value)}"
    )


def _plain(value: Any) -> str:
    """The value in one line of YAML, as flags take it."""
    import yaml

    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return f"{value:.0f}"
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
