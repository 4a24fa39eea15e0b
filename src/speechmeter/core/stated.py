"""Figures that other tools state in their result files: each with the definition of its tool.

Two tools measure two things under one name, so a figure of theirs has an id of its own, which begins with the name of
its tool, and is never mixed with ours. `metrics` makes metrics of these lines. A tool that changes what it computes
gets a new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

STATED = "stated"
"""The note that holds what a file says of a figure: a statistic → [value, lower bound, upper bound]."""
SINGLE = "value"
"""The statistic of a figure that is a single number, such as a throughput."""
COUNT = "count"
"""The note that holds of how many requests a figure is, where the file says so."""
REQUESTS = "requests"
"""The note that holds the values of the single requests, where the file has them."""
FILE = "file"
"""The note that names the file."""
MODE = "imported"
"""The mode of the protocol of a case that another tool measured."""


class Definition(NamedTuple):
    """One figure of a tool: its name in ids, unit, which way is better, and what the tool computes."""

    name: str
    unit: str
    direction: str
    about: str
    """The question that figures of several tools answer, each in its own way."""
    title: str
    formula: str
    short: str = ""
    """One plain line in place of the formula, where that is long."""


TTFT, LATENCY, BETWEEN_TOKENS, PER_TOKEN = (
    "time to first token", "request latency", "time between tokens", "time per token",
)  # fmt: skip
THROUGHPUT, TOKENS, GOODPUT, RTFX = "request throughput", "token throughput", "requests within the SLO", "RTFx"
CONCURRENCY, REQUEST_COUNT, DELAY, DURATION, WER = (
    "requests at once", "number of requests", "delay before the request", "duration", "word error rate",
)  # fmt: skip
_LOWER, _HIGHER, _PLAIN = "lower", "higher", "neither"

VLLM = "vllm bench serve"
_VLLM = (
    Definition("vllm_ttft_stated", "s", _LOWER, TTFT, "TTFT (vLLM)",
               "time from the start of the POST request to the first event of the answer that has a list `choices`, "
               "even if its text is empty; over requests without an error",
               "time from the start of the POST request to the first event with `choices`"),
    Definition("vllm_e2el_stated", "s", _LOWER, LATENCY, "end-to-end latency (vLLM)",
               "time from the start of the POST request to the last event of the answer that has a list `choices`; "
               "over requests without an error",
               "time from the start of the POST request to the last event with `choices`"),
    Definition("vllm_tpot_stated", "s", _LOWER, PER_TOKEN, "TPOT (vLLM)",
               "(end-to-end latency - TTFT) / (output tokens - 1), for requests with 2 or more tokens"),
    Definition("vllm_itl_stated", "s", _LOWER, BETWEEN_TOKENS, "ITL (vLLM)",
               "time between two successive events of an answer, over all events of all requests"),
    Definition("vllm_queue_stated", "s", _LOWER, DELAY, "client queue time (vLLM)",
               "time that a request waited in the client because the limit of concurrent requests was reached",
               "time that a request waited in the client before it was sent"),
    Definition("vllm_e2el_queue_stated", "s", _LOWER, LATENCY, "end-to-end latency with client queue (vLLM)",
               "client queue time + end-to-end latency"),
    Definition("vllm_request_throughput_stated", "1/s", _HIGHER, THROUGHPUT, "request throughput (vLLM)",
               "requests without an error / duration of the benchmark"),
    Definition("vllm_request_goodput_stated", "1/s", _HIGHER, GOODPUT, "goodput (vLLM)",
               "requests that met every limit given with --goodput / duration of the benchmark"),
    Definition("vllm_output_throughput_stated", "1/s", _HIGHER, TOKENS, "output token throughput (vLLM)",
               "output tokens of requests without an error / duration of the benchmark"),
    Definition("vllm_token_throughput_stated", "1/s", _HIGHER, TOKENS, "total token throughput (vLLM)",
               "input and output tokens of requests without an error / duration of the benchmark"),
    Definition("vllm_rtfx_stated", "1", _HIGHER, RTFX, "RTFx (vLLM)",
               "seconds of audio of requests without an error / duration of the benchmark; it grows with the number "
               "of concurrent requests",
               "seconds of audio / duration of the benchmark; grows with the number of concurrent requests"),
    Definition("vllm_concurrent_stated", "1", _PLAIN, CONCURRENCY, "most concurrent requests (vLLM)",
               "largest number of requests that were running at some time in the same second of the clock. It can "
               "exceed the limit that was set, because requests that follow each other within a second all count",
               "most requests that ran in the same second of the clock; can exceed the limit that was set"),
    Definition("vllm_completed_stated", "1", _PLAIN, REQUEST_COUNT, "completed requests (vLLM)",
               "requests without an error"),
    Definition("vllm_failed_stated", "1", _LOWER, REQUEST_COUNT, "failed requests (vLLM)", "requests with an error"),
    Definition("vllm_duration_stated", "s", _PLAIN, DURATION, "duration (vLLM)",
               "time from the start of the first request to the end of the last, without warm-up"),
)  # fmt: skip

GUIDELLM = "guidellm"
_GUIDELLM = (
    Definition("guidellm_latency_stated", "s", _LOWER, LATENCY, "request latency (guidellm)",
               "time from the start of a request to its end, of successful requests"),
    Definition("guidellm_ttft_stated", "s", _LOWER, TTFT, "TTFT (guidellm)",
               "time from the start of a request to the first token, of successful requests"),
    Definition("guidellm_itl_stated", "s", _LOWER, BETWEEN_TOKENS, "ITL (guidellm)",
               "(time of the last token - time of the first) / (output tokens - 1), of each successful request, "
               "weighted by its tokens",
               "(last token - first token) / (output tokens - 1), weighted by tokens"),
    Definition("guidellm_tpot_stated", "s", _LOWER, PER_TOKEN, "TPOT (guidellm)",
               "(time of the last token - start of the request) / output tokens, of each successful request, weighted "
               "by its tokens",
               "(last token - start of the request) / output tokens, weighted by tokens"),
    Definition("guidellm_requests_per_s_stated", "1/s", _HIGHER, THROUGHPUT, "requests per second (guidellm)",
               "successful requests that ended per second, over the measured time"),
    Definition("guidellm_output_tokens_per_s_stated", "1/s", _HIGHER, TOKENS, "output tokens per second (guidellm)",
               "output tokens of successful requests per second, over the measured time"),
    Definition("guidellm_concurrency_stated", "1", _PLAIN, CONCURRENCY, "request concurrency (guidellm)",
               "number of successful requests that were running, averaged over the measured time"),
    Definition("guidellm_slo_share_stated", "%", _HIGHER, GOODPUT, "SLO attainment (guidellm)",
               "100 × requests within the SLO / requests for which this could be determined"),
    Definition("guidellm_goodput_stated", "1/s", _HIGHER, GOODPUT, "goodput (guidellm)",
               "requests within the SLO that ended per second, over the measured time"),
    Definition("guidellm_audio_per_s_stated", "1", _HIGHER, RTFX, "audio seconds per second (guidellm)",
               "seconds of input audio of successful requests per second, over the measured time; it grows with the "
               "number of concurrent requests",
               "seconds of input audio per second; grows with the number of concurrent requests"),
    Definition("guidellm_dispatch_delay_stated", "s", _LOWER, DELAY, "dispatch delay (guidellm)",
               "time from the planned start of a request to its actual start"),
    Definition("guidellm_successful_stated", "1", _PLAIN, REQUEST_COUNT, "successful requests (guidellm)",
               "requests that ended without an error"),
    Definition("guidellm_errored_stated", "1", _LOWER, REQUEST_COUNT, "failed requests (guidellm)",
               "requests that ended with an error"),
    Definition("guidellm_incomplete_stated", "1", _LOWER, REQUEST_COUNT, "incomplete requests (guidellm)",
               "requests that were unfinished when the benchmark ended"),
    Definition("guidellm_duration_stated", "s", _PLAIN, DURATION, "duration (guidellm)",
               "duration of the measured part of the benchmark, without warm-up and cool-down"),
)  # fmt: skip

AIPERF = "aiperf"
_AIPERF = (
    Definition("aiperf_latency_stated", "s", _LOWER, LATENCY, "request latency (aiperf)",
               "time from the start of a request to the last message of its answer, for requests without an error",
               "time from the start of a request to the last message of its answer"),
    Definition("aiperf_effective_latency_stated", "s", _LOWER, LATENCY, "effective latency (aiperf)",
               "request latency + credit-to-start latency"),
    Definition("aiperf_ttft_stated", "s", _LOWER, TTFT, "TTFT (aiperf)",
               "time from the start of a request to the first message of the answer that has content"),
    Definition("aiperf_itl_stated", "s", _LOWER, BETWEEN_TOKENS, "inter-token latency (aiperf)",
               "(request latency - TTFT) / (output tokens - 1), of each request"),
    Definition("aiperf_credit_stated", "s", _LOWER, DELAY, "credit-to-start latency (aiperf)",
               "time from when aiperf allowed a request to start until it started"),
    Definition("aiperf_request_throughput_stated", "1/s", _HIGHER, THROUGHPUT, "request throughput (aiperf)",
               "requests without an error / duration of the benchmark: aiperf 0.10 divides by `benchmark_duration`, "
               "0.13 by `end_time` - `start_time`, which is longer",
               "requests without an error / duration of the benchmark"),
    Definition("aiperf_output_throughput_stated", "1/s", _HIGHER, TOKENS, "output token throughput (aiperf)",
               "output tokens / duration of the benchmark"),
    Definition("aiperf_goodput_stated", "1/s", _HIGHER, GOODPUT, "goodput (aiperf)",
               "requests that met every limit given with --goodput / duration of the benchmark"),
    Definition("aiperf_rtfx_stated", "1", _HIGHER, RTFX, "RTFx (aiperf)",
               "mean over requests of (seconds of audio of the request / its request latency)"),
    Definition("aiperf_audio_stated", "s", _PLAIN, DURATION, "audio duration (aiperf)",
               "seconds of audio of each request"),
    Definition("aiperf_concurrency_stated", "1", _PLAIN, CONCURRENCY, "effective concurrency (aiperf)",
               "number of requests that were running, averaged over time"),
    Definition("aiperf_requests_stated", "1", _PLAIN, REQUEST_COUNT, "requests (aiperf)", "requests without an error"),
    Definition("aiperf_errors_stated", "1", _LOWER, REQUEST_COUNT, "failed requests (aiperf)",
               "requests with an error"),
    Definition("aiperf_duration_stated", "s", _PLAIN, DURATION, "duration (aiperf)",
               "time from the start of the first request to the last message of the last answer"),
)  # fmt: skip

STT_BENCHMARK = "stt-benchmark"
_STT_BENCHMARK = (
    Definition("stt_benchmark_ttfs_stated", "s", _LOWER, "time to final segment", "TTFS (stt-benchmark)",
               "time from the end of speech to the last transcription segment. The end of speech is when the "
               "client's voice activity detector reported it, minus the detector's delay. Samples with an error or "
               "without a segment are left out",
               "time from the end of speech (client's detector) to the last transcription segment"),
    Definition("stt_benchmark_wer_stated", "%", _LOWER, WER, "pooled semantic WER (stt-benchmark)",
               "100 × sum of the word errors that a language model judged to change the meaning / sum of the words "
               "of the references, which the language model normalised",
               "word errors that a language model judged to matter / words, over all samples"),
    Definition("stt_benchmark_mean_wer_stated", "%", _LOWER, WER, "mean semantic WER (stt-benchmark)",
               "mean over samples of (100 × word errors that a language model judged to change the meaning / words "
               "of the reference, which the language model normalised)",
               "mean over samples of (word errors that a language model judged to matter / words)"),
    Definition("stt_benchmark_samples_stated", "1", _PLAIN, REQUEST_COUNT, "samples (stt-benchmark)",
               "audio samples that were sent to the service"),
    Definition("stt_benchmark_errors_stated", "1", _LOWER, REQUEST_COUNT, "samples with an error (stt-benchmark)",
               "audio samples for which the service or the client reported an error"),
)  # fmt: skip

TOOLS: Mapping[str, tuple[Definition, ...]] = {
    VLLM: _VLLM, GUIDELLM: _GUIDELLM, AIPERF: _AIPERF, STT_BENCHMARK: _STT_BENCHMARK,
}  # fmt: skip
"""The figures of each tool, in the order in which they are shown."""
EVERY: tuple[Definition, ...] = tuple(one for those in TOOLS.values() for one in those)
