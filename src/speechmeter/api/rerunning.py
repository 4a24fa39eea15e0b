"""One case of a run measured again with its own protocol: does its figure hold here and now?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from speechmeter.analysis.conditions import environment_differences
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.metric_names import LIVE, MODULES, metric_named
from speechmeter.analysis.module_tree import tree
from speechmeter.analysis.stated import is_imported, tool_of
from speechmeter.analysis.stopping import Rounds
from speechmeter.api.comparing import Comparison, Selection, compare, select, several_hosts
from speechmeter.api.runs import stops_in
from speechmeter.core import metrics, plugins
from speechmeter.core.errors import DeviceError, InputError, RunDirError, SubjectError
from speechmeter.core.hosts import HOST, as_stored
from speechmeter.core.outputs import Keep
from speechmeter.core.protocol import SearchProtocol
from speechmeter.core.quality import Quality
from speechmeter.core.types import CONTENT_HASHES, VARIANT, Case, Limits, Record, Spec
from speechmeter.launch.executors import SubprocessExecutor, varies
from speechmeter.launch.interpreters import answers, located
from speechmeter.launch.preflight import preflight
from speechmeter.launch.recorder import Watcher, run_sweep
from speechmeter.launch.schedule import Sweep
from speechmeter.plan.build import plugin_of
from speechmeter.plan.expand import content_hashes
from speechmeter.plan.schema import LimitsEntry
from speechmeter.plan.source import parse_plan, read_text
from speechmeter.store.run_dir import RunDir, RunWriter, is_free, new_run

Reproduced = Literal["reproduced", "not reproduced", "cannot tell"]

METRICS = ("latency", "memory", "flops", "parameters", "wer", "bleu")
"""What is compared by default, as far as the record has it."""
_LEAST_ROUNDS = 2
_FEW = 4
"""The most cases that a message lists to choose from."""


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """A case measured again: where its records are, how they compare, and every difference between the environments.

    `states` are what never stays the same, as it was then and now: load, free memory, clock.
    """

    path: Path
    case: Case
    comparison: Comparison
    differences: tuple[str, ...]
    states: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})

    @property
    def outcome(self) -> Reproduced:
        """One verdict for all metrics: not reproduced if any changed; reproduced only if none is undecided."""
        words = {v.word for v in self.comparison.verdicts}
        if words <= {"SAME"}:
            return "reproduced"
        return "cannot tell" if words <= {"SAME", "CANNOT TELL"} else "not reproduced"


@dataclass(frozen=True, kw_only=True)
class Again:
    """How a case is measured again. `rounds` None: as many as the run has of it, and at least two."""

    metrics: Sequence[str] = ()
    min_effect: float = 0.05
    rounds: int | None = None
    output: Path | None = None
    trust: bool = False


def rerun(base: Selection, wanted: str, how: Again, watch: Watcher = lambda event: None) -> Rerun:
    """Measure a case of `base` again, in fresh processes of this interpreter, and compare.

    `wanted` is the case's id or the beginning of it. Raises InputError where the case cannot be measured here: another
    input, a missing device, a metric that it does not have, code that was not trusted. Nothing is then written.
    """
    group = _chosen(base, wanted)
    case = group[0].case
    if is_imported(group[0]):
        raise InputError(
            f"{case.label} was measured with {tool_of(case)}, and only imported", where=str(base.path),
            fix="measure it again with that tool",
        )  # fmt: skip
    if not any(record.status == "ok" for record in group):
        raise InputError(
            f"no round of {case.label} was measured: {group[-1].status}",
            where=str(base.path),
            fix="choose a case that was measured",
        )
    thresholds = dict.fromkeys(_compared(group, how.metrics), how.min_effect)
    _check_trust(case.subject, base.path, how.trust)
    _check_input(case.workload.source, case.workload.options)
    scores = case.protocol.quality or Quality()
    _check_input(scores.import_ or "", scores.extra)
    limits = _limits(case, base.path)
    interpreters = _interpreters(case, base.path)
    if interpreters and not how.trust:
        raise SubjectError(
            f"{case.subject.name} is measured by a program that the run names: {interpreters[case.subject.name]}",
            where=str(base.path),
            fix="check that it is a Python interpreter of yours, then add `trust`",
        )
    try:
        preflight([case], limits, elsewhere=answers([case], interpreters))
    except DeviceError as error:  # its advice to lower a limit or leave out a device fails: the record fixes both
        fix = "run this command on a machine that has the required device and memory"
        raise DeviceError(error.reason, where=str(base.path), fix=fix) from error
    output = how.output or new_run(f"rerun-{case.id[:6]}")
    if not is_free(output):
        raise RunDirError("it already exists", where=str(output), fix="choose another `output`")
    with stops_in(output), RunWriter(output) as store:
        # the plan that is stored is only a note: the case itself is in every record
        store.begin(f"# {case.id} of {base.path.resolve().name}, measured again: {case.label}\n")
        executor = SubprocessExecutor(limits, Keep(folder=store.artifacts_path.resolve()), interpreters=interpreters)
        rounds = how.rounds or max(_LEAST_ROUNDS, sum(record.status == "ok" for record in group))
        if not varies(case):
            rounds = 1  # a second count would be the same
        run_sweep(Sweep(cases=[case], rounds=Rounds(least=rounds, most=rounds)), executor, store, watch)
    fresh = select(str(output))
    found = compare(
        replace(base, groups=(group,), filters={}), fresh, thresholds, allow_different=True, every_cell=True
    )
    machine, code = environment_differences(_known(base, group, "facts"), _known(fresh, fresh.groups[0], "facts"))
    return Rerun(
        path=output,
        case=case,
        comparison=found,
        differences=(*machine, *code),
        states=(_known(base, group, "state"), _known(fresh, fresh.groups[0], "state")),
    )


def _chosen(base: Selection, wanted: str) -> tuple[Record, ...]:
    """The rounds of the one case that is meant, under the id that its run stored."""
    stored = [(as_stored(group[0].case), group) for group in base.groups]
    fitting = [(case, group) for case, group in stored if wanted and case.id.startswith(wanted)]
    if not fitting:
        for record in RunDir(base.path).records():  # a case that its plan left out is in the run, but not measured
            if wanted and record.status == "skipped" and record.case.id.startswith(wanted):
                raise InputError(
                    f"{record.case.label} was left out of this run: {record.reason}",
                    where=str(base.path),
                    fix="choose a case that was measured",
                )
        raise _name_one(f"no case id of this run begins with {wanted!r}", base, [case for case, _ in stored])
    ids = {case.id for case, _ in fitting}
    if len(ids) > 1:
        raise _name_one(f"{len(ids)} case ids begin with {wanted!r}", base, [case for case, _ in fitting])
    case, group = fitting[0]
    if len(fitting) > 1:
        raise several_hosts(f"{case.id} was measured on", base, {group[0].case.axes[HOST] for _, group in fitting})
    plain = case.without_axis(VARIANT)
    return tuple(replace(record, case=plain) for record in group)


def _name_one(what: str, base: Selection, cases: Iterable[Case]) -> InputError:
    names = [f"{id} ({label})" for id, label in {case.id: case.label for case in cases}.items()]
    more = ", …" if len(names) > _FEW else ""
    return InputError(what, where=str(base.path), fix=f"choose one: {', '.join(names[:_FEW])}{more}")


def _check_trust(subject: Spec, run: Path, trusted: bool) -> None:
    """Code that a record names runs only where the user says so."""
    stages = [(plugin_of(str(stage.get("load", ""))), stage) for stage in subject.options.get("stages", ())]
    if not trusted and any(plugins.runs_code(*named) for named in [(subject.plugin, subject.options), *stages]):
        raise SubjectError(
            f"{subject.name} runs code that the record names", where=str(run), fix="read that code, then add `trust`"
        )


def _check_input(source: str, options: Mapping[str, Any]) -> None:
    """A file that changed is another input: measuring it would not repeat the record."""
    known = {key: value for key, value in options.items() if key in CONTENT_HASHES}
    if not known or content_hashes(Path(source)) == known:
        return
    if Path(source).exists():
        raise InputError("its content changed since it was measured", where=source, fix="restore the old content")
    raise InputError(
        "the input is missing", where=source, fix="run the command in the folder where the original run was started"
    )


def _compared(group: Sequence[Record], asked: Sequence[str]) -> list[str]:
    """The metrics to compare: those that are named, all of which the record must have, else the usual ones."""
    if not asked and group[0].case.live is not None:
        return [LIVE]
    label = group[0].case.label
    lacking = [name for name in asked if not _has(group, name)]
    if lacking:
        raise InputError(f"{label} has no {lacking[0]}", key="metric", fix=_choices(group))
    found = list(asked) or [name for name in METRICS if _has(group, name)]
    if not found:
        raise InputError(f"{label} has none of the metrics {', '.join(METRICS)}", key="metric", fix=_choices(group))
    return found


def _has(group: Sequence[Record], name: str) -> bool:
    if name == MODULES:
        return bool(tree(group))
    if name == LIVE:
        return group[0].case.live is not None
    return estimate(group, metric_named(name, group, key="metric", also=[MODULES])) is not None


def _choices(group: Sequence[Record]) -> str:
    return "choose from: " + ", ".join(sorted({m.name for m in metrics.known() if estimate(group, m) is not None}))


def _limits(case: Case, run: Path) -> Limits:
    """Those of the plan that the run keeps, else a plan's usual ones. The memory of a search is in its protocol."""
    stored = RunDir(run).plan_path
    try:
        entry = LimitsEntry.model_validate(parse_plan(read_text(stored), stored.name).data.get("limits", {}))
    except (InputError, ValidationError):
        entry = LimitsEntry()
    memory_gib = case.protocol.memory_gib if isinstance(case.protocol, SearchProtocol) else entry.memory_gib
    return replace(entry.value(), memory_gib=memory_gib, run_s=None)


def _interpreters(case: Case, run: Path) -> dict[str, str]:
    """The interpreter that the plan of the run names for the model of this case, if any."""
    stored = RunDir(run).plan_path
    try:
        entries = parse_plan(read_text(stored), stored.name).data.get("models") or ()
    except InputError:
        return {}
    named = {
        str(entry.get("name")): str(entry["interpreter"])
        for entry in entries
        if isinstance(entry, Mapping) and entry.get("interpreter")
    }
    return {name: located(python) for name, python in named.items() if name == case.subject.name}


def _known(side: Selection, group: Sequence[Record], part: str) -> Mapping[str, Any]:
    """The facts or the state of the first environment of some records that has them."""
    known = (side.environments.get(record.environment, {}).get(part, {}) for record in group)
    return next((found for found in known if found), {})
