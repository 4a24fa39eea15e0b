"""What a study found, by rules: who is fastest, what accuracy costs, what keeps up with real time, what fits.

A rule is a function from a study to its answers, none where it does not apply. To answer one more question, write a
rule, add it to `RULES` where its answer matters, and say it in words in `report/answers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from speechmeter.analysis.estimate import Estimate, estimate, real_time
from speechmeter.analysis.leading import lead
from speechmeter.analysis.live.answers import least_delay, lowest_live_error, most_streams
from speechmeter.analysis.module_tree import Line, row_lines, tree
from speechmeter.analysis.quality import System, best_score, order_of_scores
from speechmeter.analysis.study import Answer, Contest, Setting, Study, best_of, order, shared
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import ROW
from speechmeter.core.types import Record

EXACT_WITHIN = 1e-3
"""A loss that deviates from the reference by less is exact; pruned ones deviate by 0.04 and more."""
_MEMORY = (metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_NEEDED)
_ENERGY = tuple(metrics.ENERGY_PER_AUDIO_HOUR.values())
_MOST_SYSTEMS = 40
"""Beyond this many, comparing systems over all utterances takes minutes."""
_HALF_PERCENT = 50.0


Rule = Callable[[Study], Iterator[Answer]]


def _heard(settings: Sequence[Setting]) -> bool:
    return any(record.find(metrics.AUDIO_SECONDS.id) for one in settings for record in one.rounds)


def most_accurate(study: Study) -> Iterator[Answer]:
    """The system with the best score on the input and device that most systems share."""
    systems, score = _scored(study)
    if score is None:
        return
    known = {one.name: one.score for one in systems if one.score is not None}
    found = lead(known)
    if found is None:
        only = next(iter(known))
        rounds = next(one.records for one in systems if one.name == only)
        yield Answer(rule="accuracy", names=(only,), figure=known[only], rounds=rounds)
        return
    best = next(one for one in systems if one.name == found.best)
    # pairs over the same utterances distinguish more than two intervals do
    close = [
        one
        for one in systems
        if one is not best and one.score is not None and order_of_scores(best, one, score) in ("not resolvable", "same")
    ]
    behind = {one.name: one.score for one in systems if one is not best and one not in close and one.score is not None}
    runner_up = lead(behind)
    second = runner_up.best if runner_up is not None else next(iter(behind), "")
    yield Answer(
        other=second, other_figure=behind.get(second),
        rule="accuracy", names=(found.best, *(one.name for one in close)), figure=found.figure, rounds=best.records,
        of=len(known), models=len(known), certain=found.certain, close=tuple(one.records for one in close),
    )  # fmt: skip


def accuracy_cost(study: Study) -> Iterator[Answer]:
    """How many times the time of the fastest system the most accurate one takes, where these are two."""
    best = next(most_accurate(study), None)
    fast = next(fastest(study), None)
    if best is None or fast is None or best.names[0] in fast.names:
        return
    cost = estimate(best.rounds, metrics.RTF) or estimate(best.rounds, metrics.LATENCY)
    least = estimate(fast.rounds, cost.metric) if cost is not None else None
    if cost is None or least is None or least.value <= 0:
        return
    yield Answer(
        rule="cost of accuracy", names=best.names[:1], figure=estimate(best.rounds, metrics.RTFX) or cost,
        rounds=best.rounds, of=best.of, certain=cost.low is not None, other=fast.names[0], other_figure=least,
        ratio=cost.value / least.value,
    )  # fmt: skip


def _scored(study: Study) -> tuple[list[System], Metric | None]:
    """The systems that were scored on the input and device that most of them share, and their score."""
    held: dict[tuple[str, str], list[Setting]] = {}
    for one in study.settings:
        case = one.rounds[0].case
        held.setdefault((str(case.workload.to_json()), str(case.device)), []).append(one)
    groups = [own for own in held.values() if best_score([one.rounds for one in own]) is not None]
    if not groups:
        return [], None
    own = max(groups, key=len)[:_MOST_SYSTEMS]
    score = best_score([one.rounds for one in own])
    assert score is not None
    made = [
        System(name=one.name, records=one.rounds, score=estimate(one.rounds, score), cost=None)
        for one in own
    ]  # fmt: skip
    return made, score


def fastest(study: Study) -> Iterator[Answer]:
    """The fastest setting at the size that most models share: times real time, or latency without audio."""
    metric = metrics.RTFX if _heard(study.settings) else metrics.LATENCY
    yield from best_of("fastest", shared(study.settings, metric), metric)


def keeps_up(study: Study) -> Iterator[Answer]:
    """Whether all cells are faster than real time, with the slowest; else the first cell of each that is not."""
    found = [(one, rtf) for one in study.settings if (rtf := estimate(one.rounds, metrics.RTF)) is not None]
    if len(found) < 2:
        return
    slow = [(one, rtf) for one, rtf in found if real_time(rtf) != "real-time"]
    # the smallest cell that is too slow says where it stops; where none is, the slowest one says how much is left
    shown, rtf = (
        min(slow, key=lambda pair: (order(pair[0].size[0]), order(pair[0].size[1]), -pair[1].value))
        if slow
        else max(found, key=lambda pair: pair[1].value)
    )
    figure = estimate(shown.rounds, metrics.RTFX) or rtf
    yield Answer(
        rule="too slow" if slow else "real time", names=(shown.name,), figure=figure, rounds=shown.rounds,
        of=len(found), certain=real_time(rtf) != "undecided", size=shown.size, slow=len(slow),
        tried=len(study.settings),
    )  # fmt: skip


def least_memory(study: Study) -> Iterator[Answer]:
    """The setting that needs the least memory at the shared size."""
    for metric in _MEMORY:
        chosen = shared(study.settings, metric)
        if chosen:
            yield from best_of("memory", chosen, metric)
            return


def least_energy(study: Study) -> Iterator[Answer]:
    """The setting that needs the least energy for an hour of audio at the shared size."""
    for metric in _ENERGY:
        chosen = shared(study.settings, metric)
        if chosen:
            yield from best_of("energy", chosen, metric)
            return


def fastest_loss(study: Study) -> Iterator[Answer]:
    """The fastest exact loss alone, then in the whole step."""
    for rule, contests in (("loss", study.losses), ("step", study.steps)):
        for contest in contests[:1]:
            yield from best_of(rule, _exact(contest), metrics.LATENCY, where=contest.title)


def leanest_loss(study: Study) -> Iterator[Answer]:
    """The exact loss whose step needs the least memory."""
    for contest in (*study.steps, *study.losses)[:1]:
        for metric in _MEMORY[:2]:
            answers = list(best_of("loss memory", _exact(contest), metric, where=contest.title))
            yield from answers
            if answers:
                return


def _exact(contest: Contest) -> Sequence[Setting]:
    """Those that agree with the reference; all where nobody was compared with it."""
    deviations = {one.name: estimate(one.rounds, metrics.LOSS_DEVIATION) for one in contest.settings}
    if not any(deviations.values()):
        return contest.settings
    near = {name for name, found in deviations.items() if found is not None and found.value < EXACT_WITHIN}
    return [one for one in contest.settings if one.name in near]


def largest_module(study: Study) -> Iterator[Answer]:
    """The module that takes most of a call: of the rows that a plan names, else the largest inside the largest."""
    for one in study.settings:
        lines = [line for line in row_lines(one.rounds) if line.scope.kind == ROW] or _innermost(one.rounds)
        figures = {line.name: share for line in lines if (share := _share(one.rounds, line)) is not None}
        found = lead(figures, largest=True)
        if found is not None:
            yield Answer(
                rule="module", names=(found.best, *found.close), figure=found.figure, rounds=one.rounds,
                of=len(figures), certain=found.certain, where=one.name,
            )  # fmt: skip
            return


def _share(rounds: Sequence[Record], line: Line) -> Estimate | None:
    return estimate(rounds, metrics.MODULE_SHARE, line.scope)


def _innermost(rounds: Sequence[Record]) -> list[Line]:
    """The lines inside of those that take more than half of the call."""
    lines = [line for line in tree(rounds) if not line.is_label and line.pattern]
    shares = {line: share.value for line in lines if (share := _share(rounds, line)) is not None}
    inside = [line for line in shares if not line.above]
    while True:
        largest = max(inside, key=lambda line: shares[line], default=None)
        if largest is None or shares[largest] <= _HALF_PERCENT:
            return inside
        below = [line for line in shares if line.above and line.above[-1] == largest.pattern]
        if not below:
            return inside
        inside = below


def largest_that_fits(study: Study) -> Iterator[Answer]:
    """The line that takes the largest size that a search found, for the first and the last of what lines share."""
    yield from _fits(study, searched=True)


def fits_of_grid(study: Study) -> Iterator[Answer]:
    """The same of a grid in which a case ran out of memory."""
    yield from _fits(study, searched=False)


def _fits(study: Study, *, searched: bool) -> Iterator[Answer]:
    held = {where: [e for e in own if e.fits and e.searched is searched] for where, own in study.edges.items()}
    known = [(where, own) for where, own in held.items() if own]
    for where, own in dict(known[:1] + known[-1:]).items():
        by_model = {edge.case.subject.name: edge for edge in own}
        sizes = {name: edge.fits for name, edge in by_model.items() if edge.fits is not None}
        ordered = sorted(sizes, key=lambda name: -sizes[name].value)
        best = [name for name in ordered if sizes[name].value == sizes[ordered[0]].value]
        behind = [name for name in ordered if name not in best]
        equal = [name for name in behind if sizes[name].value == sizes[behind[0]].value]
        first = by_model[best[0]]
        yield Answer(
            rule="fits", names=tuple(best), figure=sizes[best[0]], rounds=first.largest, of=len(sizes), where=where,
            other=" and ".join(equal), other_figure=sizes[equal[0]] if equal else None, limit=first.fails,
        )  # fmt: skip


RULES: tuple[Rule, ...] = (
    most_accurate,
    least_delay,
    most_streams,
    lowest_live_error,
    fastest_loss,
    leanest_loss,
    largest_module,
    largest_that_fits,
    fastest,
    accuracy_cost,
    keeps_up,
    fits_of_grid,
    least_memory,
    least_energy,
)
"""In the order of their importance: the first answers are the large figures."""


def answers(study: Study, rules: Sequence[Rule] = RULES) -> list[Answer]:
    """All that the rules find, in their order; of several about one figure the first."""
    found: dict[tuple[str, int], Answer] = {}
    for rule in rules:
        for answer in rule(study):
            found.setdefault((answer.figure.metric.id, id(answer.rounds)), answer)
    return list(found.values())
