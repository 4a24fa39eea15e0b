"""A site over many runs as files: a list with filters, a page for each study, and the figures of each as JSON.

The address of a study follows from the name of its run, so that it stays the same when runs are added after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from speechmeter.core.types import Record
from speechmeter.report.page.build import Watch, chart_runtime, document, embedded, page_data
from speechmeter.report.page.study import keys_of
from speechmeter.report.sources import Source

RUNTIME, INDEX, INDEX_DATA = "charts.js", "index.html", "index.json"
_INDEX_SCRIPTS = ("dom.js", "answers.js", "index.js")
_TITLE = "Speechmeter: all runs"
_LISTED = ("id", "name", "about", "headline", "doubts", "findings")
Figures = Callable[[Sequence[Record]], Iterator[dict[str, Any]]]
"""A row a figure, from the records of a study."""


def site_files(
    sources: Sequence[Source], version: str, figures: Figures, watch: Watch = lambda done, of: None
) -> Iterator[tuple[str, bytes]]:
    """(path in the site, content) of every file, the list last: until it is there, nothing leads to the others."""
    yield RUNTIME, chart_runtime().encode()
    listed = []
    for at, (source, key) in enumerate(zip(sources, keys_of([source.name for source in sources]), strict=True)):
        data = page_data([source], version)
        (study,) = data["studies"]
        entry = {
            **{name: study[name] for name in _LISTED},
            "id": key,
            "page": f"studies/{key}.html",
            "data": f"studies/{key}.json",
            "devices": list(dict.fromkeys(source.device(record) for record in source.records)),
            "models": list(dict.fromkeys(record.case.subject.name for record in source.records)),
        }
        home = {"index": f"../{INDEX}", "data": f"{key}.json"}
        study["id"] = key
        page = document(f"Speechmeter: {source.name}", {**data, "home": home}, f'<script src="../{RUNTIME}"></script>')
        yield entry["page"], page.encode()
        yield entry["data"], _json({**_public(entry), "version": version, "figures": list(figures(source.records))})
        listed.append(entry)
        watch(at + 1, len(sources))
    yield INDEX_DATA, _json({"version": version, "studies": [_public(entry) for entry in listed]})
    without_cases = [{**one, "findings": [{**found, "case": None} for found in one["findings"]]} for one in listed]
    yield INDEX, document(_TITLE, {"version": version, "studies": without_cases}, "", _INDEX_SCRIPTS).encode()


def _public(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without what only the page needs of it."""
    shown = ("value", "unit", "interval", "name", "label", "warning")
    return {**entry, "findings": [{name: found[name] for name in shown} for found in entry["findings"]]}


def _json(data: Any) -> bytes:
    return (json.dumps(json.loads(embedded(data)), ensure_ascii=False, indent=1) + "\n").encode()
