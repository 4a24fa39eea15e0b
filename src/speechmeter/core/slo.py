"""A service-level objective: bounds that every conversation, or nearly every one, of a live system has to stay within.

`final_delay_p95_s=0.8` bounds a percentile, and is judged by its share: at least 95 % of conversations within 0.8 s,
one without an answer counting as beyond. `live_completeness=99%` is such a share itself. `keep_up=0.01` and
`live_wer=10%` bound a mean over rounds. An SLO belongs to the analysis: it is no part of a case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.plugins import nearest

EXAMPLE = "for example final_delay_p95_s=0.8,live_completeness=99%,keep_up=0.01"
ALPHA = 0.05
"""One bound in twenty may be wrong: verdicts are at 95 %, one-sided."""
PERCENTILES = ("p50", "p90", "p95", "p99")
DELAYS = (
    metrics.FINAL_DELAY, metrics.FINALIZE_DELAY, metrics.REQUEST_LATENCY, metrics.FIRST_TOKEN,
    metrics.FIRST_PARTIAL_FROM_SEND, metrics.FIRST_PARTIAL_FROM_ONSET, metrics.ENDPOINT_DELAY, metrics.BACKLOG,
    metrics.OPEN_DELAY,
    metrics.FIRST_BYTE, metrics.FIRST_SOUND, metrics.VOICE_TO_VOICE, metrics.UNDERRUN_LONGEST, metrics.UNDERRUN_TOTAL,
    metrics.PREBUFFER_NEEDED,
)  # fmt: skip
"""One value a conversation, so that a share of conversations is within a limit."""
_MEANS = (metrics.KEEP_UP, metrics.LIVE_WER, metrics.EARLY_ENDPOINT, metrics.SPEECH_RTF, metrics.ROUND_TRIP_WER)
_NAME = re.compile(r"(?P<metric>\w+?)(?:_(?P<percentile>p\d+))?(?:_(?P<unit>s|ms))?")
_NAMES = (*(f"{one.name}_p95_s" for one in DELAYS), metrics.LIVE_COMPLETENESS.name, *(one.name for one in _MEANS))


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A limit in the unit of the metric. `share` of conversations have to be within it; None for a mean over rounds.

    Of `live_completeness` the share is the bound itself, and every conversation that is complete is within.
    """

    metric: Metric
    limit: float
    share: float | None
    text: str

    @property
    def least_conversations(self) -> int:
        """How many faultless conversations show at 95 % that the share is reached; 0 for a mean."""
        if self.share is None:
            return 0
        return math.ceil(math.log(ALPHA) / math.log(self.share) - 1e-9)

    @property
    def on_completeness(self) -> bool:
        """Whether it is a share of answers, not of answers in time."""
        return self.metric == metrics.LIVE_COMPLETENESS


@dataclass(frozen=True, kw_only=True)
class Slo:
    """All bounds. Verdicts count rounds from `first_round` on: the first round of a search only chose the levels."""

    bounds: tuple[Bound, ...]
    first_round: int = 0

    @property
    def text(self) -> str:
        """As it was given."""
        return ",".join(bound.text for bound in self.bounds)

    @property
    def least_conversations(self) -> int:
        """How many conversations a level needs at least to pass."""
        return max(bound.least_conversations for bound in self.bounds)

    @property
    def delay(self) -> Bound | None:
        """The first bound on a delay."""
        return next((one for one in self.bounds if one.share is not None and not one.on_completeness), None)


def read_slo(text: str) -> Mapping[str, str]:
    """The parts of `final_delay_p95_s=0.8,keep_up=0.01`. Raises InputError for a part without a value."""
    found: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, equals, value = (one.strip() for one in part.partition("="))
        if not equals or not name or not value:
            raise InputError(f"{part!r} is not metric=limit", key="slo", fix=EXAMPLE)
        if name in found:
            raise InputError(f"{name} is given twice", key="slo", fix="remove one")
        found[name] = value
    return found


def slo_of(given: Mapping[str, object] | str, *, first_round: int = 0) -> Slo:
    """The SLO of a text or a mapping. Raises InputError for a metric or a limit that cannot be."""
    pairs = read_slo(given) if isinstance(given, str) else given
    if not pairs:
        raise InputError("slo is empty", key="slo", fix=EXAMPLE)
    return Slo(bounds=tuple(_bound(str(name), value) for name, value in pairs.items()), first_round=first_round)


def _bound(name: str, value: object) -> Bound:
    match = _NAME.fullmatch(name)
    metric = next((one for one in _known() if match is not None and one.name == match["metric"]), None)
    if match is None or metric is None:
        raise InputError(f"an SLO cannot bound {name!r}", key="slo", fix=nearest(name, list(_NAMES)))
    percentile, text = match["percentile"], f"{name}={value}"
    if metric in DELAYS:
        if percentile not in PERCENTILES:
            raise InputError(
                f"the percentile of {name} is missing or not supported",
                key="slo",
                fix=f"write {metric.name}_p95_s, or p50, p90 or p99",
            )
        scale = 1e-3 if match["unit"] == "ms" else 1.0
        share = int(percentile[1:]) / 100
        return Bound(metric=metric, limit=scale * _number(name, value), share=share, text=text)
    if percentile or match["unit"]:
        raise InputError(f"{metric.name} has no percentile and no unit of time", key="slo", fix=f"write {metric.name}")
    limit = _number(name, value, percent=metric.unit == "%")
    if metric != metrics.LIVE_COMPLETENESS:
        return Bound(metric=metric, limit=limit, share=None, text=text)
    if not 0 < limit < 100:
        raise InputError(
            "live_completeness must be above 0 % and below 100 %; no number of conversations can show 100 %",
            key="slo",
            fix="for example live_completeness=99%",
        )
    return Bound(metric=metric, limit=limit, share=limit / 100, text=text)


def _known() -> tuple[Metric, ...]:
    return (*DELAYS, metrics.LIVE_COMPLETENESS, *_MEANS)


def _number(name: str, value: object, *, percent: bool = False) -> float:
    """A limit; of a share `99%` and `99`, not `0.99`, which would be read as less than one percent."""
    text = str(value).strip()
    plain = text.removesuffix("%").strip() if percent else text.removesuffix("s").strip()
    try:
        found = float(plain)
    except ValueError:
        found = math.nan
    if isinstance(value, bool) or not math.isfinite(found) or found < 0:
        raise InputError(f"{name} takes a number of at least 0, not {text!r}", key="slo", fix=EXAMPLE)
    if percent and not text.endswith("%") and found < 1:
        raise InputError(f"{name}={text} is less than 1 %", key="slo", fix=f"write {name}={100 * found:g}%")
    return found
