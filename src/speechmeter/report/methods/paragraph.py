"""The set-up of a run as a paragraph for a paper, made by rules from its records, and how Speechmeter is cited."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from speechmeter.analysis.metric_names import METHODS
from speechmeter.core.errors import InputError
from speechmeter.core.hosts import hosts_apart
from speechmeter.core.plugins import nearest
from speechmeter.core.printable import one_line
from speechmeter.core.types import LEFT_OUT, Record
from speechmeter.report.escaping import json_of, latex_text, markdown_text
from speechmeter.report.grids import case_labels
from speechmeter.report.methods import study, taking
from speechmeter.report.methods.citation import bibtex, citation, citation_key
from speechmeter.report.methods.words import Environments, facts_of, packages
from speechmeter.report.tables import by_case

WORD = METHODS
"""What `show --metric` takes for it."""
_COLUMNS = 100


@dataclass(frozen=True, kw_only=True)
class Methods:
    """Sentences by what they are about, in the order of the paragraph; the BibTeX entry, and the key it is cited by."""

    sentences: tuple[tuple[str, str], ...]
    bibtex: str
    key: str

    @property
    def paragraph(self) -> str:
        """All sentences."""
        return " ".join(text for _, text in self.sentences)


def methods(records: Sequence[Record], environments: Environments, statistic: str = "geomean") -> Methods:
    """How these records were taken; `statistic` is what the shown times are. Raises InputError without records."""
    if not records:
        raise InputError("this run holds no records, so there is nothing to describe", where=f"--metric {WORD}")
    apart = hosts_apart(records)
    groups = list(by_case(apart).values())
    tried = [group for group in groups if group[0].status not in LEFT_OUT] or groups
    facts = facts_of(apart, environments)
    versions = sorted({str(packages(one)["speechmeter"]) for _, one in facts if "speechmeter" in packages(one)})
    said = {
        "subjects": study.subjects(tried, versions),
        "input": study.fed(tried),
        "clock": study.clock(tried),
        "settings": study.settings(tried),
        "samples": taking.samples(tried),
        "rounds": taking.rounds(tried, facts, statistic),
        "random": study.randomness(tried),
        "notes": study.notes(tried),
        "other figures": study.other_figures(tried),
        "machines": taking.machines(tried, facts),
        "software": taking.software(facts),
        "failures": taking.failures(groups, case_labels(apart)),
        "warnings": taking.warnings(tried),
        "dates": taking.dates(tried),
    }
    data = citation()
    sentences = tuple((about, one_line(text)) for about, text in said.items() if text)
    return Methods(sentences=sentences, bibtex=bibtex(data, versions), key=citation_key(data))


def written(found: Methods, format: str) -> str:
    """The paragraph and the entry in a format by name. Raises InputError for one that holds tables alone."""
    if format not in _FORMATS:
        raise InputError(
            f"{WORD} is text, which the format {format} cannot hold",
            where="--format",
            fix=nearest(format, list(_FORMATS)),
        )
    return _FORMATS[format](found)


def _plain(found: Methods) -> str:
    return f"{_filled(found.paragraph)}\n\n{found.bibtex}"


def _filled(text: str) -> str:
    return textwrap.fill(text, _COLUMNS, break_long_words=False, break_on_hyphens=False)


def _markdown(found: Methods) -> str:
    paragraph = " ".join(markdown_text(text) for _, text in found.sentences)
    return f"{paragraph}\n\n```bibtex\n{found.bibtex}\n```"


def _latex(found: Methods) -> str:
    """The paragraph cites the entry, which is a comment below it: it belongs into the .bib file."""
    named = f" with {study.TOOL}"
    text = latex_text(found.paragraph).replace(named, rf"{named}~\cite{{{found.key}}}", 1)
    entry = [f"% {line}" for line in found.bibtex.splitlines()]
    return "\n".join([_filled(text), "", "% for the .bib file:", *entry])


def _json(found: Methods) -> str:
    return json_of({"paragraph": found.paragraph, "sentences": dict(found.sentences), "bibtex": found.bibtex})


_FORMATS: dict[str, Callable[[Methods], str]] = {
    "table": _plain,
    "markdown": _markdown,
    "latex": _latex,
    "json": _json,
}
