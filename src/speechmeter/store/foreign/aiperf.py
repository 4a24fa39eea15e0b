"""`profile_export_aiperf.json` of aiperf: each metric with its unit, mean and percentiles.

Figures are carried by name, in the unit that the file gives. The command line and the address of the server, which may
hold a key, are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speechmeter.core import stated
from speechmeter.store.foreign.found import Benchmark, Figures, Found, name, others, scalars

_METRICS = {
    "request_latency": "aiperf_latency_stated", "effective_latency": "aiperf_effective_latency_stated",
    "time_to_first_token": "aiperf_ttft_stated", "inter_token_latency": "aiperf_itl_stated",
    "credit_to_start_latency": "aiperf_credit_stated", "request_throughput": "aiperf_request_throughput_stated",
    "output_token_throughput": "aiperf_output_throughput_stated", "goodput": "aiperf_goodput_stated",
    "rtfx": "aiperf_rtfx_stated", "audio_duration": "aiperf_audio_stated",
    "effective_concurrency": "aiperf_concurrency_stated", "request_count": "aiperf_requests_stated",
    "error_request_count": "aiperf_errors_stated", "benchmark_duration": "aiperf_duration_stated",
}  # fmt: skip
_FACTORS = {
    "s": {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1.0, "s": 1.0, "seconds": 1.0},
    "1/s": {"requests/sec": 1.0, "tokens/sec": 1.0},
    "1": {"ratio": 1.0, "requests": 1.0, "count": 1.0},
}
_UNITS = {one.name: one.unit for one in stated.TOOLS[stated.AIPERF]}
_PERCENTILES = ("p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "min", "max", "std")
_EXTRA = ("language", "stream", "max_completion_tokens", "max_tokens", "temperature", "response_format")
_ABOUT = (
    "schema_version", "aiperf_version", "benchmark_id", "was_cancelled", "is_complete", "error_summary", "start_time",
    "end_time", "input_config", "run_info", "telemetry_data",
)  # fmt: skip
_PROFILING = "profiling"
_ON_PURPOSE = (
    "command line, addresses and headers (left out because they may hold secrets): run_info, input_config.endpoint"
)


def is_ours(data: Any) -> bool:
    """Whether an object is a summary of aiperf."""
    return isinstance(data, dict) and "aiperf_version" in data and "input_config" in data


def is_record(data: Any) -> bool:
    """Whether an object is a line of its file of single requests."""
    return (
        isinstance(data, dict)
        and isinstance(data.get("metadata"), dict)
        and "credit_issued_ns" in data["metadata"]
        and "metrics" in data
    )


def read(data: Mapping[str, Any], file: str) -> Found:
    """The one benchmark of a file."""
    figures = Figures(file)
    for key, metric in _METRICS.items():
        said = data.get(key)
        if said is None:
            continue
        if not isinstance(said, dict):
            figures.leave_out(key, "not an object with a unit and a value")
            continue
        factor = _FACTORS[_UNITS[metric]].get(str(said.get("unit")))
        if factor is None:
            unit = name(said.get("unit"), "")
            figures.leave_out(key, f"its unit {unit!r} is unknown here" if unit else "it has no unit")
            continue
        values = {stated.SINGLE if "p50" not in said else "mean": said.get("avg")}
        values |= {one: said[one] for one in _PERCENTILES if one in said}
        figures.add(metric, values, key=key, factor=factor, count=said.get("count"))
    schema = name(data.get("schema_version"), "")
    if schema.partition(".")[0] not in ("", "1"):
        figures.leave_out(
            "schema_version",
            f"the file has version {schema} of its format, but Speechmeter knows version 1; figures may be missing",
        )
    return Found(
        tool=stated.AIPERF,
        version=name(data["aiperf_version"]),
        benchmarks=(_described(data, figures),),
        left_out=(*figures.left_out, *_not_carried(data)),
    )


def _not_carried(data: Mapping[str, Any]) -> list[str]:
    unknown = others(data, (*_METRICS, *_ABOUT))
    http = [key for key in unknown if key.startswith("http_")]
    rest = [key for key in unknown if not key.startswith("http_")]
    parts = [f"times and sizes of the HTTP client: {', '.join(http)}"] if http else []
    return [_ON_PURPOSE, *parts, *([f"other metrics: {', '.join(rest)}"] if rest else [])]


def _described(data: Mapping[str, Any], figures: Figures) -> Benchmark:
    config = data["input_config"] if isinstance(data["input_config"], dict) else {}
    endpoint = config.get("endpoint") if isinstance(config.get("endpoint"), dict) else {}
    phase = _measured_phase(config.get("phases"))
    axes = {key: phase[key] for key in ("concurrency", "request_rate") if phase.get(key) is not None}
    axes = axes or {"strategy": phase.get("type")}
    extra = scalars(endpoint.get("extra"), _EXTRA) if endpoint else {}
    return Benchmark(
        model=name(_model(config)),
        input=f"{name(phase.get('requests'), 'some')} requests, {name((endpoint or {}).get('type'))}",
        options=extra,
        axes=scalars(axes, axes),
        started=name(data.get("start_time"), "").partition(".")[0],
        measurements=tuple(figures.measurements),
        warnings=tuple(_doubts(data)),
    )


def _measured_phase(items: Any) -> Mapping[str, Any]:
    """The phase that was measured: schema 1.4 has its kind, 1.3 its name alone. A warm-up may stand before it."""
    phases = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
    measured = [one for one in phases if _PROFILING in (one.get("kind"), one.get("name"))]
    return next(iter(measured or [one for one in phases if one.get("exclude_from_results") is not True]), {})


def _model(config: Mapping[str, Any]) -> Any:
    """The first model: a list of items in schema 1.4, of names before."""
    models = config.get("models")
    items = models.get("items") if isinstance(models, dict) else config.get("model_names") or models
    first = items[0] if isinstance(items, list) and items else None
    return first.get("name") if isinstance(first, dict) else first


def _doubts(data: Mapping[str, Any]) -> list[str]:
    found = ["aiperf says that the benchmark was cancelled"] if data.get("was_cancelled") is True else []
    found += ["aiperf says that the benchmark is not complete"] if data.get("is_complete") is False else []
    return found + (["aiperf says that some requests ended with an error"] if data.get("error_summary") else [])
