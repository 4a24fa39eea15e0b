"""Small result files of the shape that other tools write, and what they say. Values are made up."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

SECRET = "sk-secret-prompt"


def vllm(**changes: Any) -> dict[str, Any]:
    """A result of `vllm bench serve --save-result --save-detailed` with three requests."""
    found: dict[str, Any] = {
        "date": "20261101-101112", "endpoint_type": "openai-audio", "backend": "openai-audio", "label": None,
        "model_id": "tiny-asr", "tokenizer_id": "tiny-asr", "num_prompts": 3, "request_rate": "inf",
        "burstiness": 1.0, "max_concurrency": 2, "duration": 4.0, "completed": 3, "failed": 0,
        "total_input_tokens": 9, "total_output_tokens": 24, "request_throughput": 0.75, "request_goodput": None,
        "output_throughput": 6.0, "total_token_throughput": 8.25, "max_concurrent_requests": 4, "rtfx": 7.5,
        "ttfts": [0.1, 0.2, 0.6], "latencies": [1.0, 1.5, 2.0], "itls": [[0.1], [0.2], [0.3]],
        "generated_texts": [SECRET, "b", "c"], "errors": ["", "", ""], "region": SECRET,
        **_summary("ttft", 300.0, 200.0, 216.02), **_summary("e2el", 1500.0, 1500.0, 408.25),
        **_summary("tpot", 0.0, 0.0, 0.0),
    }  # fmt: skip
    return {**found, **changes}


def _summary(short: str, mean: float, median: float, std: float) -> dict[str, float]:
    return {f"mean_{short}_ms": mean, f"median_{short}_ms": median, f"std_{short}_ms": std, f"p99_{short}_ms": median}


def guidellm(**changes: Any) -> dict[str, Any]:
    """A report of guidellm with one benchmark, with a key and prompts in the places where it keeps them."""
    benchmark = {
        "type_": "generative_benchmark",
        "config": {
            "strategy": {"type_": "concurrent", "streams": 2, "max_concurrency": 2},
            "backend": {"kind": "openai_http", "model": "tiny-asr", "request_format": "/v1/audio/transcriptions",
                        "target": f"http://{SECRET}@localhost", "api_key": SECRET},
            "slo": {"ttft_ms": 80.0, "tpot_ms": None},
        },
        "scheduler_metrics": {"requests_made": {"successful": 4}},
        "metrics": {
            "request_totals": {"successful": 4, "errored": 1, "incomplete": 0, "total": 5},
            "request_latency": {"successful": _distribution(0.5, 4, (0.4, 0.6))},
            "time_to_first_token_ms": {"successful": _distribution(70.0, 4, (60.0, 80.0)), "errored": None},
            "inter_token_latency_ms": {"successful": _distribution(0.0, 0)},
            "slo_attainment": 0.75, "slo_determined_requests": 4, "prompt_token_count": None,
            "audio": {"seconds": {"input_per_second": {"successful": _distribution(12.0, 4)}}},
        },
        "requests": {"successful": [{"request_args": SECRET, "output": SECRET}], "errored": []},
        "warnings": [{"code": "generation_delay_ttft", "message": SECRET}],
        "start_time": 1793527872.0, "end_time": 1793527876.0, "duration": 4.0,
    }  # fmt: skip
    about = {"version": 2, "guidellm_version": "0.8.1", "python_version": "3.11", "platform": SECRET}
    spec = {"backend": {"model": "tiny-asr", "api_key": SECRET}, "data": [{"prompt": SECRET}]}
    return {"metadata": about, "config": {"spec": spec}, "benchmarks": [benchmark], "conclusions": [{}], **changes}


def _distribution(mean: float, count: int, ends: tuple[float, float] | None = None) -> dict[str, Any]:
    return {
        "mean": mean, "median": mean, "std_dev": 0.1 * mean, "min": 0.5 * mean, "max": 3 * mean, "count": count,
        "percentiles": {"p001": mean, "p50": 0.9 * mean, "p95": 2 * mean},
        "mean_ci": None if ends is None else {"lower": ends[0], "upper": ends[1]},
        "percentile_cis": None if ends is None else {"p50": {"lower": 0.8 * mean, "upper": mean}, "p95": None},
    }  # fmt: skip


def aiperf(**changes: Any) -> dict[str, Any]:
    """A summary of aiperf with two metrics of requests and two single ones."""
    found: dict[str, Any] = {
        "schema_version": "1.4", "aiperf_version": "0.13.0", "benchmark_id": "1",
        "request_latency": {"unit": "ms", "avg": 5000.0, "p50": 4000.0, "p95": 9000.0, "std": 100.0, "count": 8},
        "rtfx": {"unit": "ratio", "avg": 1.25, "p50": 1.5, "count": 8},
        "request_throughput": {"unit": "requests/sec", "avg": 0.5},
        "audio_duration": {"unit": "fortnights", "avg": 5.0, "p50": 5.0},
        "http_req_waiting": {"unit": "ms", "avg": 1.0},
        "input_config": {
            "models": {"items": [{"name": "tiny-asr"}]},
            "endpoint": {"urls": [f"http://{SECRET}"], "type": "audio_transcription",
                         "extra": {"max_completion_tokens": 8, "token": SECRET}},
            "phases": [{"name": "profiling", "kind": "profiling", "type": "concurrency", "requests": 8,
                        "concurrency": 2}],
        },
        "run_info": {"cli_command": f"aiperf profile --api-key {SECRET}"},
        "was_cancelled": False, "is_complete": False, "error_summary": [],
        "start_time": "2026-11-01T09:30:52.314226",
    }  # fmt: skip
    return {**found, **changes}


def write(path: Path, *objects: Any) -> Path:
    """The objects as JSON, one a line."""
    path.write_text("\n".join(json.dumps(one) for one in objects))
    return path


def stt_benchmark(path: Path) -> Path:
    """A database with two services: one with five samples, of which one failed, and one without a time."""
    rows = [
        ("a", "deepgram", "nova", 0.2, SECRET, 1.0, "2026-11-01T00:00:01", None),
        ("b", "deepgram", "nova", 0.4, "t", 1.0, "2026-11-01T00:00:02", None),
        ("c", "deepgram", "nova", 0.6, "t", 1.0, "2026-11-01T00:00:03", None),
        ("d", "deepgram", "nova", None, None, 1.0, "2026-11-01T00:00:04", "timeout"),
        ("e", "deepgram", "nova", 0.1, "t", 1.0, "2026-11-01T00:00:05", "late"),
        ("a", "azure", None, None, None, 1.0, "2026-11-01T00:01:00", "no key"),
    ]
    errors = [("a", "deepgram", "nova", 0.5, 1, 0, 0, 2), ("b", "deepgram", "nova", 0.0, 0, 0, 0, 8)]
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE results (id INTEGER PRIMARY KEY, sample_id, service_name, model_name, ttfb_seconds, "
            "transcription, audio_duration_seconds, timestamp, error)"
        )
        database.execute(
            "CREATE TABLE wer_metrics (sample_id, service_name, model_name, wer, substitutions, deletions, insertions, "
            "reference_words)"
        )
        columns = (
            "sample_id, service_name, model_name, ttfb_seconds, transcription, audio_duration_seconds, timestamp, error"
        )
        database.executemany(f"INSERT INTO results ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        database.executemany("INSERT INTO wer_metrics VALUES (?, ?, ?, ?, ?, ?, ?, ?)", errors)
        database.commit()
    return path
