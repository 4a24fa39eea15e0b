"""Figures as the `summary.json` that `vllm bench sweep plot` draws: a list of flat objects, one a point.

Imported results of vLLM keep vLLM's keys and units, so that its defaults find them. All other figures have the names
that every export gives them: a key of vLLM's stands for vLLM's definition alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.api.figures import ExportedCase
from speechmeter.core.files import write_whole
from speechmeter.core.printable import escaped_json
from speechmeter.core.scope import TOTAL
from speechmeter.report.numbers import counted
from speechmeter.store.foreign import vllm_bench

NAME = "summary.json"
"""The one name that the plotting tool looks for."""
_PERCENTILES = ("p50", "p90", "p95", "p99")
_OF_SAMPLES = re.compile(r"_(?:p\d+|max)$")
"""Metrics that are percentiles already."""
_NUMBER, _MODEL = "run_number", "model_id"


def path_of(target: str) -> Path:
    """The file that is written for a folder, or for the path of such a file."""
    path = Path(target)
    return path if path.name == NAME else path / NAME


def write(cases: Sequence[ExportedCase], run: str, target: str | None) -> str:
    """Write the file in the folder `target`, whole or not at all."""
    path = path_of(target or run)
    found = [point for case in cases for point in _points(case)]
    names = dict.fromkeys(name for case in cases for name in case.settings)
    # the tool asks every point for what it groups by
    points = [{_NUMBER: 0, **dict.fromkeys(names), **point} for point in found]
    write_whole(path, (escaped_json(json.dumps(points, indent=1, allow_nan=False)) + "\n").encode())
    return f"written: {path}, {counted(len(points), 'point')}; to draw: vllm bench sweep plot {path.parent}"


def _points(case: ExportedCase) -> Iterator[dict[str, Any]]:
    """One point of a case; of results of vLLM one of each round, as its sweeps write them."""
    about = {**case.settings, "case": case.id, _MODEL: case.settings["model"]}
    imported = [keys for record in case.records if (keys := vllm_bench.written(record.measurements))]
    if imported:
        concurrency = {"max_concurrency": about["concurrency"]} if "concurrency" in about else {}
        yield from ({**about, **concurrency, _NUMBER: index, **keys} for index, keys in enumerate(imported))
        return
    yield {**about, **_figures(case)}


def _figures(case: ExportedCase) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in case.figures:
        found |= one.values
        if one.scope == TOTAL and one.metric.unit == "s" and not one.metric.exact and not _OF_SAMPLES.search(one.key):
            shares = {share: estimate(case.records, one.metric, statistic=share) for share in _PERCENTILES}
            found |= {f"{one.key}_{share}": made.value for share, made in shares.items() if made is not None}
    return found
