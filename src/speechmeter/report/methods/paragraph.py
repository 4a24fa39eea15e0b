"""The set-up of a run as a paragraph for a paper, made by rules from its records, and how Speechmeter is cited."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from speechmeter.analysis.metric_names import METHODS
from speechmeter.analysis.selecting import by_case
from speechmeter.analysis.stated import is_imported, tool_of
from speechmeter.core.errors import InputError
from speechmeter.core.hosts import hosts_apart
from speechmeter.core.plugins import nearest
from speechmeter.core.printable import one_line
from speechmeter.core.types import LEFT_OUT, Record
from speechmeter.report.escaping import json_of, latex_text, markdown_text
from speechmeter.report.labels import case_labels
from speechmeter.report.methods import conversations, study, taking
from speechmeter.report.methods.words import Environments, facts_of, listed, packages

WORD = METHODS
"""What `show --metric` takes for it."""
_COLUMNS = 100
CITATION = "CITATION.cff"
"""How Speechmeter is cited; the file is in every wheel."""


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
    """How these records were measured; `statistic` is what the shown times are. Raises InputError without records."""
    if not records:
        raise InputError("this run holds no records, so there is nothing to describe", key="metric")
    apart = hosts_apart([record for record in records if not is_imported(record)])
    if not apart:
        return _imported(records)
    groups = list(by_case(apart).values())
    tried = [group for group in groups if group[0].status not in LEFT_OUT] or groups
    facts = facts_of(apart, environments)
    versions = sorted({str(packages(one)["speechmeter"]) for _, one in facts if "speechmeter" in packages(one)})
    sentences_about = {
        "subjects": study.subjects(tried, versions),
        "input": study.fed(tried),
        "conversations": conversations.held(tried),
        "clock": study.clock(tried),
        "moments": conversations.clock(tried),
        "settings": study.settings(tried),
        "samples": taking.samples(tried),
        "rounds": taking.rounds(tried, facts, statistic),
        "random": study.randomness(tried),
        "notes": study.notes(tried),
        "live figures": conversations.figures(tried),
        "other figures": study.other_figures(tried),
        "machines": taking.machines(tried, facts),
        "software": taking.software(facts),
        "failures": taking.failures(groups, case_labels(apart)),
        "warnings": taking.warnings(tried),
        "dates": taking.dates(tried),
    }
    data = citation()
    sentences = tuple((about, one_line(text)) for about, text in sentences_about.items() if text)
    return Methods(sentences=sentences, bibtex=bibtex(data, versions), key=citation_key(data))


def _imported(records: Sequence[Record]) -> Methods:
    """The paragraph on figures of which Speechmeter measured none."""
    groups, tools = list(by_case(records).values()), listed(dict.fromkeys(tool_of(record.case) for record in records))
    sentences = {
        "tools": f"The figures were measured with {tools}, not with Speechmeter, and keep the definitions of {tools}.",
        "warnings": taking.warnings(groups),
        "dates": taking.dates(groups),
    }
    data = citation()
    kept = tuple((about, one_line(text)) for about, text in sentences.items() if text)
    return Methods(sentences=kept, bibtex=bibtex(data, []), key=citation_key(data))


def written(found: Methods, format: str) -> str:
    """The paragraph and the entry in a format by name. Raises InputError for one that holds tables alone."""
    if format not in _FORMATS:
        raise InputError(
            f"{WORD} is text; the format {format} holds tables only",
            key="format",
            fix=nearest(format, list(_FORMATS)),
        )
    return _FORMATS[format](found)


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


_FORMATS: dict[str, Callable[[Methods], str]] = {
    "table": lambda found: f"{_filled(found.paragraph)}\n\n{found.bibtex}",
    "markdown": _markdown,
    "latex": _latex,
    "json": lambda found: json_of(
        {"paragraph": found.paragraph, "sentences": dict(found.sentences), "bibtex": found.bibtex}
    ),
}


def citation() -> dict[str, Any]:
    """What the file says. A wheel has it inside the package, a checkout at its root."""
    import yaml

    packed = files("speechmeter") / CITATION
    text = (packed if packed.is_file() else Path(__file__).parents[4] / CITATION).read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def citation_key(data: Mapping[str, Any]) -> str:
    """What a paper cites: the first word of the title, and the year where there is one."""
    word = re.sub(r"\W", "", str(data["title"]).split()[0]).lower()
    return f"{word}{str(data.get('date-released', ''))[:4]}"


def bibtex(data: Mapping[str, Any], versions: Sequence[str] = ()) -> str:
    """The entry for what the file says. `versions` are those that measured; by default the file's own."""
    fields = {
        "title": f"{{{latex_text(str(data['title']))}}}",
        "author": " and ".join(_author(author) for author in data["authors"]),
        "version": latex_text(", ".join(versions) or str(data.get("version", ""))),
        "year": str(data.get("date-released", ""))[:4],
        "doi": str(data.get("doi", "")),
        "url": str(data.get("url") or data.get("repository-code") or ""),
        "license": str(data.get("license", "")),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@software{{{citation_key(data)},", *lines, "}"])


def _author(author: Mapping[str, Any]) -> str:
    """`Family, Given` of a person; a group in braces, so that its name is not taken apart."""
    if "name" in author:
        return f"{{{latex_text(str(author['name']))}}}"
    family = " ".join(str(author[part]) for part in ("name-particle", "family-names") if author.get(part))
    return latex_text(", ".join(filter(None, [family, str(author.get("given-names", ""))])))
