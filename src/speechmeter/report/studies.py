"""A study for the rules: its cases with names, its losses by what can be compared, and what fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speechmeter.analysis.frontier import Edge
from speechmeter.analysis.study import Contest, Setting, Study
from speechmeter.core.types import Record
from speechmeter.report.charts.figure import names_of, shortened
from speechmeter.report.frontier import searched, titled_edges, words_at
from speechmeter.report.labels import grid_groups, position
from speechmeter.report.losses import PARTS, is_loss, rankings
from speechmeter.report.sources import Source


def study_of(source: Source) -> Study:
    """What the rules are given: cases by name and size, losses by contest, and what fits."""
    usual = [r for r in source.records if not is_loss(r) and not searched(r) and r.status != "skipped"]
    contests: dict[bool, list[Contest]] = {False: [], True: []}
    for ranking in rankings([record for record in source.records if not searched(record)]):
        own = tuple(_setting(rounds[0].case.subject.name, rounds) for rounds in ranking.ranked)
        contests[ranking.title.startswith(PARTS["step"])].append(Contest(title=ranking.title, settings=own))
    return Study(
        settings=settings_of(usual), losses=tuple(contests[False]), steps=tuple(contests[True]), edges=_edges(source)
    )


def settings_of(records: Sequence[Record]) -> tuple[Setting, ...]:
    """The cases of some records, each with the name that it has among those of its size."""
    groups = grid_groups(records)
    names = names_of(groups)
    return tuple(_setting(names[title], rounds) for title, group in groups.items() for rounds in group)


def _setting(name: str, rounds: Sequence[Record]) -> Setting:
    case = rounds[0].case
    return Setting(name=name, model=case.subject.name, size=position(case), rounds=rounds)


def _edges(source: Source) -> Mapping[str, list[Edge]]:
    """Where lines end, by what they have in common beside the model; of a grid only where a cell did not fit."""
    found: dict[str, list[Edge]] = {}
    titled = titled_edges(source.records)
    names = shortened({title: title.partition(" · ")[2] for title, _ in titled})
    for title, edge in titled:
        if edge.searched or edge.fails is not None:
            words = names[title] if len(set(names.values())) > 1 else ""
            found.setdefault(" · ".join(filter(None, (words, words_at(edge)))), []).append(edge)
    return found
