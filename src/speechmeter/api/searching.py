"""The search for the largest input that fits, from a study that asks for it."""

from __future__ import annotations

from speechmeter.analysis.live.probing import CONFIRMING_ROUNDS
from speechmeter.core.errors import DeviceError, InputError
from speechmeter.core.finding import TARGETS
from speechmeter.launch.capacity import Carrying
from speechmeter.launch.schedule import Sweep
from speechmeter.launch.search import FITTING, Search, Tactic
from speechmeter.plan.live import slo_in
from speechmeter.plan.study import Study


def check_search(study: Study, launcher: str, *, clients: bool, two_interpreters: bool) -> None:
    """Raise InputError for a search that cannot be made as asked. A study without one passes."""
    if study.plan.find is None:
        return
    if two_interpreters:
        raise InputError(
            "`find` tries one size after another, so it cannot compare two interpreters",
            key="baseline_python",
            fix="run a separate search with each interpreter",
        )
    if launcher == "ray" and not clients:
        raise InputError(
            f"`find` runs one trial after another, so it cannot use `launcher: {launcher}`",
            key="launcher",
            fix="use `launcher: subprocess` on the machine in question",
        )
    if launcher != "inline" or TARGETS[study.plan.find].live:
        return
    on_cpu = [case for case in study.cells.cases if case.device.is_cpu]
    if on_cpu:
        raise DeviceError(
            "a search on the CPU goes on until memory runs out; with `launcher: inline` this kills the calling process",
            where=study.origin(on_cpu[0], "device"),
            fix="use `launcher: subprocess`",
        )
    if study.plan.limits.memory_gib is not None:
        raise InputError(
            "`launcher: inline` cannot enforce `limits.memory_gib`",
            where=study.source.origin(("limits",)),
            fix="use `launcher: subprocess`",
        )


def search_of(study: Study, sweep: Sweep) -> Search:
    """The search that a study asks for; `sweep` holds its lines and those that are not available."""
    plan = study.plan
    assert plan.find is not None
    target = TARGETS[plan.find]
    return Search(
        lines=sweep.cases,
        target=target,
        most=plan.find_most or target.most,
        within=target.within if plan.find_within is None else plan.find_within,
        tactic=_tactic(study),
        unavailable=sweep.unavailable,
        retry_failed=sweep.retry_failed,
    )


def _tactic(study: Study) -> Tactic:
    slo = slo_in(study.plan)
    if slo is None or not slo.first_round:
        return FITTING
    rounds = study.plan.rounds
    return Carrying(slo=slo, confirming=CONFIRMING_ROUNDS if rounds == "auto" else max(2, rounds))


def needs(study: Study) -> list[str]:
    """What an SLO needs before a level can pass, in a line each."""
    slo = slo_in(study.plan)
    if slo is None:
        return []
    return [
        f"slo {bound.text}: to pass, a level needs at least {bound.least_conversations:,} conversations over all "
        f"rounds{' after the first' if slo.first_round else ''}, and more if some of them miss the limit"
        for bound in slo.bounds
        if bound.least_conversations
    ]


def search_lines(search: Search) -> list[str]:
    """What a search would do, one text for each of its lines."""
    target, left_out = search.target, {skip.case.id: skip.reason for skip in search.unavailable}
    most = target.value(target.steps(search.most))
    return [
        f"{line.id}  {line.label}  · "
        + (
            f"left out: {left_out[line.id]}"
            if line.id in left_out
            else f"search for the largest {target.axis} between {line.axes[target.axis]:,} and {most:,}"
        )
        for line in search.lines
    ]
