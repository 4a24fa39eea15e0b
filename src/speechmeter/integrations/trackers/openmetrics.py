"""Figures as OpenMetrics text, which Prometheus reads: gauges for each metric and for the ends of its interval."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from speechmeter.api.figures import ExportedCase, ExportedFigure
from speechmeter.core.files import whole_file

_UNITS = {"s": "seconds", "bytes": "bytes", "%": "percent", "J": "joules", "W": "watts"}
_ENDS = ("value", "low", "high")
_ROLES = {"value": "", "low": "lower end of its 95 % interval: ", "high": "upper end of its 95 % interval: "}


def write(cases: Sequence[ExportedCase], run: str, target: str | None) -> str:
    """Write the file `target`, whole or not at all."""
    path = Path(target or "speechmeter.prom")
    with whole_file(path) as draft:
        draft.write_text("".join(f"{line}\n" for line in lines(cases, run)), encoding="utf-8")
    return f"written: {path}"


def lines(cases: Sequence[ExportedCase], run: str) -> Iterator[str]:
    """The lines of the text. All samples of one name stand together, as the format wants."""
    by_metric: dict[str, list[tuple[ExportedCase, ExportedFigure]]] = {}
    for case in cases:
        for one in case.figures:
            by_metric.setdefault(one.metric.id, []).append((case, one))
    for found in by_metric.values():
        for end in _ENDS:
            samples = [(case, one, value) for case, one in found if (value := getattr(one, end)) is not None]
            if samples:
                yield from _family([*samples], end, run)
    yield "# EOF"


def _family(samples: Sequence[tuple[ExportedCase, ExportedFigure, float]], end: str, run: str) -> Iterator[str]:
    metric = samples[0][1].metric
    unit = _UNITS.get(metric.unit, "")
    parts = ["speechmeter", re.sub(r"\W", "_", metric.name, flags=re.ASCII), "" if end == "value" else end, unit]
    name = "_".join(part for part in parts if part)
    yield f"# TYPE {name} gauge"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {_escaped(_ROLES[end] + metric.definition)}"
    for case, one, value in samples:
        known = {"run": run, "case": case.id, "scope": one.scope}
        settings = {**{_label(key): text for key, text in case.settings.items()}, **known}
        labels = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in settings.items())
        yield f"{name}{{{labels}}} {value!r}"


def _label(name: str) -> str:
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
