"""guidellm's JSON of versions 1 and 2: several benchmarks in one file, each with a strategy of its own.

The file keeps prompts, answers, request headers and a key of the server: this reader copies figures by name. Figures
are of the requests that were successful. Where there was no request guidellm writes 0 with a count of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from speechmeter.core import stated
from speechmeter.store.foreign.found import Benchmark, Figures, Found, name, others, scalars

_MS = 1e-3
_METRICS = {
    "request_latency": ("guidellm_latency_stated", 1.0),
    "time_to_first_token_ms": ("guidellm_ttft_stated", _MS),
    "inter_token_latency_ms": ("guidellm_itl_stated", _MS),
    "time_per_output_token_ms": ("guidellm_tpot_stated", _MS),
    "requests_per_second": ("guidellm_requests_per_s_stated", 1.0),
    "output_tokens_per_second": ("guidellm_output_tokens_per_s_stated", 1.0),
    "request_concurrency": ("guidellm_concurrency_stated", 1.0),
    "request_goodput": ("guidellm_goodput_stated", 1.0),
    "root_dispatch_delay": ("guidellm_dispatch_delay_stated", 1.0),
}
_COUNTS = {"successful": "guidellm_successful_stated", "errored": "guidellm_errored_stated",
           "incomplete": "guidellm_incomplete_stated"}  # fmt: skip
_PERCENTILES = {"p01": "p1", "p05": "p5", "p10": "p10", "p25": "p25", "p50": "p50", "p75": "p75", "p90": "p90",
                "p95": "p95", "p99": "p99"}  # fmt: skip
_PARTS = ("percentiles", "percentile_cis", "mean_ci")
_VERSIONS = (1, 2)
_STRATEGY = {"streams": "concurrency", "max_concurrency": "concurrency", "rate": "request_rate"}
_SLO = ("ttft_ms", "tpot_ms", "e2el_ms")
_ON_PURPOSE = (
    "prompts, answers, request headers, keys and addresses (left out because they may hold secrets): requests, "
    "config.spec.backend, config.spec.data"
)


def is_ours(data: Any) -> bool:
    """Whether an object is a report of guidellm."""
    benchmarks = data.get("benchmarks") if isinstance(data, dict) else None
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and isinstance(benchmarks[0], dict)
        and {"metrics", "scheduler_metrics"} <= benchmarks[0].keys()
    )


def read(data: Mapping[str, Any], file: str) -> Found:
    """The benchmarks of a report, one a strategy that was tried."""
    about = _part(data, "metadata")
    backend = _part(_part(data, "config", "spec"), "backend") or _part(data, "args")
    places = [f"benchmarks[{index}]" for index in range(len(data["benchmarks"]))]
    sound = {
        place: one
        for place, one in zip(places, data["benchmarks"], strict=True)
        if isinstance(one, dict) and isinstance(one.get("metrics"), dict)
    }
    found = [_benchmark(one, backend, Figures(file, f"{place}.")) for place, one in sound.items()]
    left_out = dict.fromkeys([_ON_PURPOSE, *(line for _, lines in found for line in lines)])
    left_out |= {f"{place}: it has no metrics": None for place in places if place not in sound}
    if (version := about.get("version")) not in _VERSIONS:
        said = name(version, "none")
        left_out[
            (
                f"metadata.version: the file has version {said} of its format, but Speechmeter knows 1 and 2; "
                "figures may be missing"
            )
        ] = None
    if data.get("conclusions"):
        left_out["conclusions of a search, which are not figures of one benchmark: conclusions"] = None
    return Found(
        tool=stated.GUIDELLM,
        version=name(about.get("guidellm_version"), ""),
        benchmarks=tuple(benchmark for benchmark, _ in found),
        left_out=tuple(left_out),
    )


def _part(data: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _benchmark(data: Mapping[str, Any], backend: Mapping[str, Any], figures: Figures) -> tuple[Benchmark, list[str]]:
    said = data["metrics"]
    for key, (metric, factor) in _METRICS.items():
        _summary(figures, metric, said.get(key), f"metrics.{key}", factor)
    per_second = _part(said, "audio", "seconds").get("input_per_second")
    _summary(figures, "guidellm_audio_per_s_stated", per_second, "metrics.audio.seconds.input_per_second", 1.0)
    figures.add("guidellm_slo_share_stated", {stated.SINGLE: said.get("slo_attainment")}, key="metrics.slo_attainment",
                factor=100, most=100, count=said.get("slo_determined_requests"))  # fmt: skip
    for key, inner in (("request_totals", said.get("request_totals")), ("audio", said.get("audio")),
                       ("audio.seconds", _part(said, "audio").get("seconds"))):  # fmt: skip
        if inner is not None and not isinstance(inner, dict):
            figures.leave_out(f"metrics.{key}", "not an object")
    totals = _part(said, "request_totals")
    for key, metric in _COUNTS.items():
        figures.add(metric, {stated.SINGLE: totals.get(key)}, key=f"metrics.request_totals.{key}")
    figures.add("guidellm_duration_stated", {stated.SINGLE: data.get("duration")}, key="duration")
    unknown = others(said, (*_METRICS, "request_totals", "audio", "slo_attainment", "slo_determined_requests"))
    missing = [f"other metrics: {', '.join(unknown)}"] if unknown else []
    return _described(data, backend, figures), [*figures.left_out, *missing]


def _summary(figures: Figures, metric: str, said: Any, key: str, factor: float) -> None:
    """One metric, of the successful requests where it tells these apart."""
    if said is None:
        return
    own = said["successful"] if isinstance(said, dict) and said.get("successful") is not None else said
    if not isinstance(own, dict) or not all(isinstance(own.get(one) or {}, dict) for one in _PARTS):
        figures.leave_out(key, "not an object with figures")
        return
    if own.get("count") == 0:
        figures.absent(metric, "the file has no value of a successful request")
        return
    shares = {_PERCENTILES[one]: value for one, value in _part(own, "percentiles").items() if one in _PERCENTILES}
    ends = {_PERCENTILES[one]: _ends(pair) for one, pair in _part(own, "percentile_cis").items() if one in _PERCENTILES}
    named = {one: own.get(key) for one, key in (("mean", "mean"), ("std", "std_dev"), ("min", "min"), ("max", "max"))}
    figures.add(metric, {**named, **shares}, key=key, factor=factor, bounds={**ends, "mean": _ends(own.get("mean_ci"))},
                count=own.get("count"))  # fmt: skip


def _ends(pair: Any) -> tuple[Any, Any]:
    return (pair.get("lower"), pair.get("upper")) if isinstance(pair, dict) else (None, None)


def _described(data: Mapping[str, Any], backend: Mapping[str, Any], figures: Figures) -> Benchmark:
    strategy = _part(data, "config", "strategy")
    own = _part(data, "config", "backend") or backend
    axes = {axis: strategy[key] for key, axis in _STRATEGY.items() if strategy.get(key) is not None}
    axes = axes or {"strategy": strategy.get("type_") or strategy.get("kind")}
    limits = {key: value for key, value in _part(data, "config", "slo").items() if key in _SLO and value is not None}
    return Benchmark(
        model=name(own.get("model")),
        input=name(own.get("request_format") or own.get("request_type") or own.get("kind")),
        options=scalars(limits, limits),
        axes=scalars(axes, axes),
        started=_moment(data.get("start_time")),
        wall_s=_seconds(data.get("duration")),
        measurements=tuple(figures.measurements),
        warnings=tuple(f"guidellm warns: {name(one.get('code'))}" for one in _warnings(data)),
    )


def _warnings(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    said = data.get("warnings")
    return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0.0


def _moment(value: Any) -> str:
    if not isinstance(value, int | float) or not 0 < value < 1e11:
        return ""
    return datetime.fromtimestamp(value, timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds")
