"""`vllm bench serve --save-result`: one JSON object, or one a line with `--append-result`.

Lists of single requests are in seconds, summaries in milliseconds. The file does not name vLLM's version, and holds no
lengths of audio. Where there was no value vLLM writes 0: a summary whose mean, median and spread are all 0 is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from speechmeter.core import stated
from speechmeter.core.metrics import STATED
from speechmeter.core.types import Measurement
from speechmeter.store.foreign.found import Benchmark, Figures, Found, name, others, scalars

_SUMMARIES = {
    "ttft": ("vllm_ttft_stated", "ttfts"),
    "e2el": ("vllm_e2el_stated", "latencies"),
    "tpot": ("vllm_tpot_stated", ""),
    "itl": ("vllm_itl_stated", ""),
    "client_queue_time": ("vllm_queue_stated", "queue_times"),
    "e2el_including_client_queue": ("vllm_e2el_queue_stated", ""),
}
_SINGLE = {
    "request_throughput": "vllm_request_throughput_stated", "request_goodput": "vllm_request_goodput_stated",
    "output_throughput": "vllm_output_throughput_stated", "total_token_throughput": "vllm_token_throughput_stated",
    "rtfx": "vllm_rtfx_stated", "max_concurrent_requests": "vllm_concurrent_stated",
    "completed": "vllm_completed_stated", "failed": "vllm_failed_stated", "duration": "vllm_duration_stated",
}  # fmt: skip
_SUMMARY = re.compile(rf"(mean|median|std|p\d+(?:\.\d+)?)_({'|'.join(_SUMMARIES)})_ms")
_WORDS = {"median": "p50"}
_OWN_WORDS = {"p50": "median"}
_INPUT = ("num_prompts", "total_input_tokens")
_KNOWN = (
    "date", "endpoint_type", "backend", "model_id", "num_prompts", "request_rate", "burstiness", "max_concurrency",
    "total_input_tokens", "ttfts", "latencies", "queue_times", *_SINGLE,
)  # fmt: skip
_TEXTS = ("generated_texts", "errors")
_PER_TOKEN = ("itls", "start_times", "input_lens", "output_lens")


def is_ours(data: Any) -> bool:
    """Whether an object is a result of vLLM's benchmark."""
    return isinstance(data, dict) and {"endpoint_type", "model_id", "num_prompts", "request_rate"} <= data.keys()


def read(results: Sequence[tuple[str, Mapping[str, Any]]], file: str) -> Found:
    """The benchmarks of a file, one a result; each comes with its place, such as `line 2`."""
    read_ones = [_benchmark(data, Figures(file, f"{place}: " if place else "")) for place, data in results]
    left_out = dict.fromkeys(line for _, lines in read_ones for line in lines)
    return Found(tool=stated.VLLM, benchmarks=tuple(benchmark for benchmark, _ in read_ones), left_out=tuple(left_out))


def written(measurements: Sequence[Measurement]) -> dict[str, float]:
    """Imported figures of vLLM under the keys and in the units in which vLLM wrote them; empty for other figures."""
    said = {m.metric: m.notes[stated.STATED] for m in measurements if m.values and stated.STATED in m.notes}
    found: dict[str, float] = {}
    for short, (metric, _) in _SUMMARIES.items():
        for statistic, (value, *_) in said.get(STATED[metric].id, {}).items():
            found[f"{_OWN_WORDS.get(statistic, statistic)}_{short}_ms"] = value * 1000
    for key, metric in _SINGLE.items():
        if own := said.get(STATED[metric].id):
            found[key] = own[stated.SINGLE][0]
    return found


def _benchmark(data: Mapping[str, Any], figures: Figures) -> tuple[Benchmark, list[str]]:
    summaries: dict[str, dict[str, Any]] = {}
    for key, value in data.items():
        if match := _SUMMARY.fullmatch(key):
            summaries.setdefault(match[2], {})[_WORDS.get(match[1], match[1])] = value
    for short, values in summaries.items():
        metric, requests = _SUMMARIES[short]
        if all(values.get(one) in (0, None) for one in ("mean", "p50", "std")):
            figures.absent(metric, "the file says 0, which vLLM writes if it has no value")
            continue
        figures.add(metric, values, key=f"{short}_ms", factor=1e-3, count=data.get("completed"))
        if requests and not data.get("failed"):  # of a failed request vLLM lists 0
            figures.add_requests(metric, data.get(requests), key=requests, count=data.get("completed"))
    for key, metric in _SINGLE.items():
        figures.add(metric, {stated.SINGLE: data.get(key)}, key=key)
    return _described(data, figures), [*figures.left_out, *_not_carried(data)]


def _described(data: Mapping[str, Any], figures: Figures) -> Benchmark:
    endpoint = name(data.get("endpoint_type") or data.get("backend"))
    axes = {"concurrency": data.get("max_concurrency"), "request_rate": data.get("request_rate")}
    if data.get("burstiness") not in (None, 1.0):
        axes["burstiness"] = data["burstiness"]
    return Benchmark(
        model=name(data.get("model_id")),
        input=f"{name(data.get('num_prompts'))} requests, {endpoint}",
        options=scalars(data, _INPUT),
        axes=scalars(axes, axes),
        started=_started(data.get("date")),
        measurements=tuple(figures.measurements),
        warnings=(
            "the file does not state vLLM's version or the lengths of audio, so check that files you compare "
            "match in these",
        ),
    )


def _started(date: Any) -> str:
    try:
        return datetime.strptime(str(date), "%Y%m%d-%H%M%S").isoformat()
    except ValueError:
        return ""


def _not_carried(data: Mapping[str, Any]) -> list[str]:
    found = [
        (
            "texts of answers and errors (left out because they may hold secrets)",
            [key for key in _TEXTS if key in data],
        ),
        ("values of single tokens and requests", [key for key in _PER_TOKEN if key in data]),
        ("no figures, or unknown here", others(_unsummarised(data), (*_KNOWN, *_TEXTS, *_PER_TOKEN))),
    ]
    return [f"{what}: {', '.join(keys)}" for what, keys in found if keys]


def _unsummarised(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if not _SUMMARY.fullmatch(key)}
