"""The page as one file: data as JSON, a script, a style sheet and the chart runtime, nothing from outside."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import count
from string import Template
from typing import Any

from speechmeter.core.metrics import Metric
from speechmeter.report.charts.figure import samples_strip
from speechmeter.report.charts.style import PAGE
from speechmeter.report.page.cases import Shared
from speechmeter.report.page.lenses import lenses_data
from speechmeter.report.page.study import drawn_sections, keys_of, section_data, study_data
from speechmeter.report.sources import Source

SCRIPTS = ("dom.js", "charts.js", "answers.js", "table.js", "detail.js", "sections.js", "page.js")
"""In the order in which they are put together."""
Watch = Callable[[int, int], None]
"""Called with how many of how many cases are done."""


def build_page(
    sources: Sequence[Source], version: str, watch: Watch = lambda done, of: None, *, samples: int = 0
) -> str:
    """The whole HTML document for some sources, with so many samples of speech of each system that speaks."""
    names = ", ".join(dict.fromkeys(source.name for source in sources))
    runtime = f"<script>{chart_runtime()}</script>"
    return document(f"Speechmeter: {names}", page_data(sources, version, watch, samples=samples), runtime)


def document(title: str, data: Any, runtime: str = "", scripts: Sequence[str] = SCRIPTS) -> str:
    """An HTML document that shows some data by some scripts of this folder. `runtime` is HTML in front of them."""
    return Template(_part("page.html")).substitute(
        title=html.escape(title),
        style=_part("page.css"),
        data=embedded(data),
        runtime=runtime,
        script="".join(_part(name) for name in scripts),
    )


def chart_runtime() -> str:
    """What draws the charts, as a script that may stand inside a script element."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle()
    return bundle.replace("</script", r"<\/script")


def embedded(data: Any) -> str:
    """JSON that may stand inside a script element: no `<` is left in it, so nothing can close the element."""
    try:
        text = _json(data)
    except ValueError:  # rare, and looking for it takes longer than writing
        text = _json(_finite(data))
    return text.replace("<", r"\u003c").encode("utf-8", "replace").decode()


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    """The same with words in place of numbers that JSON does not have: `nan`, `inf`."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def page_data(
    sources: Sequence[Source], version: str, watch: Watch = lambda done, of: None, *, samples: int = 0
) -> dict[str, Any]:
    """Everything the page shows."""
    shared, defined = Shared(), dict[str, Metric]()
    total = sum(len(source.cases) for source in sources)
    done = count(1)
    keys = keys_of([source.name for source in sources])
    studies = [
        study_data(source, key, shared, defined, lambda: watch(next(done), total), samples)
        for source, key in zip(sources, keys, strict=True)
    ]
    together = (
        [section_data(one, defined) for one in drawn_sections(sources, together=True)] if len(sources) > 1 else []
    )
    return {
        "version": version,
        "studies": studies,
        "together": together,
        "lenses": lenses_data(sources, defined) if len(sources) > 1 else None,
        "definitions": [
            [m.id, m.unit, m.title, m.direction, m.definition, m.formula] for _, m in sorted(defined.items())
        ],
        "shared": shared.values,
        "strip": samples_strip(),
        "config": PAGE,
    }


def _part(name: str) -> str:
    return (files("speechmeter.report.page") / name).read_text(encoding="utf-8")
