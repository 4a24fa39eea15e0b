"""The SQLite file of Pipecat's stt-benchmark: one benchmark a service and model.

The file has one row a sample and no summaries, so these are computed as the tool's report computes them: percentiles
between neighbours, over samples without an error that have a time. It is opened for reading only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from speechmeter.core import stated
from speechmeter.core.errors import InputError
from speechmeter.store.foreign.found import Benchmark, Figures, Found, NotSaid, linear_percentile, name, number

MAGIC = b"SQLite format 3\x00"
_MOST_ROWS = 1_000_000
_RESULTS = "SELECT service_name, model_name, ttfb_seconds, error, timestamp FROM results ORDER BY id"
_ERRORS = "SELECT service_name, model_name, wer, substitutions, deletions, insertions, reference_words FROM wer_metrics"
_LEFT_OUT = (
    "texts of transcripts and references: results.transcription, ground_truth",
    "what the language model judged: semantic_wer_traces, wer_metrics.errors",
    "configuration of the runs: runs.config_snapshot",
)
_Rows = Sequence[tuple[Any, ...]]


def read(path: Path) -> Found:
    """The services of a database. Raises InputError for a database of something else, or a damaged one."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "results" not in tables:
                raise _not_ours(path, "it has no table `results`")
            results = database.execute(_RESULTS).fetchmany(_MOST_ROWS + 1)
            errors = database.execute(_ERRORS).fetchmany(_MOST_ROWS) if "wer_metrics" in tables else []
    except sqlite3.Error as error:
        raise _not_ours(path, str(error)) from error
    if len(results) > _MOST_ROWS:
        raise _not_ours(path, f"it has more than {_MOST_ROWS:,} results")
    services = dict.fromkeys((row[0], row[1]) for row in results)
    benchmarks, left_out = [], list(_LEFT_OUT)
    for key in services:
        figures = Figures(path.name, f"{name(key[0])} {name(key[1], '')}".strip() + ": ")
        own = [row[2:] for row in results if row[:2] == key]
        _times(figures, own)
        _word_errors(figures, [row[2:] for row in errors if row[:2] == key])
        left_out += figures.left_out
        benchmarks.append(_described(key, own, figures))
    return Found(tool=stated.STT_BENCHMARK, benchmarks=tuple(benchmarks), left_out=tuple(left_out))


def _not_ours(path: Path, why: str) -> InputError:
    return InputError(
        f"this is not a database of stt-benchmark: {why}", where=str(path), fix="use the results.db that it wrote"
    )


def _times(figures: Figures, rows: _Rows) -> None:
    times = _numbers(figures, "ttfb_seconds", [row[:1] for row in rows if row[1] is None and row[0] is not None])
    if times:
        sorted_s = sorted(value for (value,) in times)
        shares = {f"p{percent}": linear_percentile(sorted_s, percent) for percent in (50, 90, 95, 99)}
        spread = stdev(sorted_s) if len(sorted_s) > 1 else 0.0
        values = {"mean": fmean(sorted_s), **shares, "std": spread, "min": sorted_s[0], "max": sorted_s[-1]}
        figures.add("stt_benchmark_ttfs_stated", values, key="ttfb_seconds", count=len(sorted_s))
        figures.add_requests("stt_benchmark_ttfs_stated", sorted_s, key="ttfb_seconds")
    elif times is not None:
        figures.absent("stt_benchmark_ttfs_stated", "no sample without an error has a time")
    figures.add("stt_benchmark_samples_stated", {stated.SINGLE: len(rows)}, key="results")
    failed = sum(row[1] is not None for row in rows)
    figures.add("stt_benchmark_errors_stated", {stated.SINGLE: failed}, key="results.error")


def _word_errors(figures: Figures, rows: _Rows) -> None:
    numbers = _numbers(figures, "wer_metrics", rows)
    words = sum(row[4] for row in numbers or ())
    if not numbers or words <= 0:
        return
    pooled = sum(sum(row[1:4]) for row in numbers) / words
    shares = sorted(row[0] for row in numbers)
    figures.add("stt_benchmark_wer_stated", {stated.SINGLE: pooled}, key="wer_metrics", factor=100, count=len(rows))
    values = {"mean": fmean(shares), "p50": median(shares)}
    figures.add("stt_benchmark_mean_wer_stated", values, key="wer_metrics", factor=100, count=len(rows))


def _numbers(figures: Figures, key: str, rows: _Rows) -> list[list[float]] | None:
    """The rows as numbers; None, after saying which one it is, where a cell holds none."""
    found = []
    for index, row in enumerate(rows, 1):
        try:
            cells = [number(value) for value in row]
        except NotSaid as error:
            figures.leave_out(f"{key}, row {index}", str(error))
            return None
        if None in cells:
            figures.leave_out(f"{key}, row {index}", "it has an empty cell")
            return None
        found.append([cell for cell in cells if cell is not None])
    return found


def _described(key: tuple[Any, Any], rows: _Rows, figures: Figures) -> Benchmark:
    service, model = name(key[0]), name(key[1], "")
    return Benchmark(
        model=f"{service} {model}".strip(),
        input=f"{len(rows)} samples",
        started=min((str(row[2])[:19] for row in rows if isinstance(row[2], str)), default=""),
        measurements=tuple(figures.measurements),
    )
