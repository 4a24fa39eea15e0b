"""Why the figures of a subject may mislead: each warning names the cause and the way out."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from statistics import median
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.batches import other_content
from speechmeter.core.types import Case, Measurement
from speechmeter.engine.session import LOAD, LoadedSession
from speechmeter.meters.latency import StageClock

_SUSPICIOUS = 10
"""The first call takes so many times as long as the later ones: then new inputs are tried."""
_SLOWER = 5
"""A new input takes so many times as long as one that was seen before: then there is a cache."""
_LEAST_NS = 1_000_000
"""Less than a millisecond may be anything."""
_LEAST_INPUTS, _MOST_INPUTS = 2, 6
"""New inputs. On a busy machine any two calls may be slow by chance (log-mel with 80 % of the cores in use)."""
_ENOUGH_NS = 2_000_000_000
"""Calls of seconds are not slow by chance: then two inputs are enough."""


def session_warnings(session: LoadedSession) -> list[str]:
    """Warnings on a case that is loaded: items left out, unfinished results, decoding on noise, TF32."""
    pinned = any(stage.pinned_tokens is not None for stage in session.stages)
    is_text = session.first is not None and session.first.output.is_text and not pinned
    left_out = session.batches.left_out
    warnings = [left_out.line()] if left_out is not None and left_out.count else []
    warnings += session.batches.warnings
    if session.first is not None and session.first.unfinished:
        warnings.append(
            f"the model returned {session.first.unfinished}: its work is not finished when the call returns, so it "
            "is not measured; return the finished result"
        )
    if (session.prepared.data_dependent or is_text) and session.case.workload.source == "noise":
        warnings.append(
            "the input is noise, but the time of a decoder depends on what is said, so time and RTF are misleading; "
            "use real speech, for example --audio sample (ships with the package)"
        )
    return [*warnings, *other_tf32(session.case)]


def other_tf32(case: Case) -> list[str]:
    """A warning where the model's own code switched TF32, so that the axis `tf32` of the record is not true."""
    torch = sys.modules.get("torch")
    if torch is None or not case.device.is_cuda:
        return []
    asked, used = case.axes.tf32, bool(torch.backends.cuda.matmul.allow_tf32)
    if asked == used:
        return []
    words = {True: "on", False: "off"}
    return [
        f"the model's code switched TF32 {words[used]}, but the case requests TF32 {words[asked]}; "
        f"remove that from the model's code, or use `tf32: {str(used).lower()}`"
    ]


def cache_warning(session: LoadedSession, found: Sequence[Measurement]) -> list[str]:
    """What to say about a subject that answers from a cache: all timed calls have the same inputs.

    Only where the first call took far longer than the later ones. Then inputs of the same size that it has not seen are
    tried: if all of them are slow, and fast when they come again, there is a cache.
    """
    latency = next((m for m in found if (m.metric, m.scope) == (metrics.LATENCY.id, "total") and m.values), None)
    if latency is None:
        return []
    usual_ns = 1e9 * median(latency.values)
    if session.first_ns < max(_SUSPICIOUS * usual_ns, usual_ns + _LEAST_NS):
        return []
    batch = session.batches[0]
    clock = StageClock([stage for stage in session.stages if stage.name != LOAD], session.sync)
    new_ns: list[int] = []
    again_ns: list[int] = []
    try:
        for data in _new_inputs(batch.data):
            clock.sample(
                batch
            )  # wakes threads that slept meanwhile: on a busy machine that takes 16 ms, as new work would
            new_ns.append(clock.sample(replace(batch, data=data)))
            again_ns.append(clock.sample(replace(batch, data=data)))
            if min(new_ns) < max(_SLOWER * usual_ns, usual_ns + _LEAST_NS):
                return []
            if len(new_ns) >= _LEAST_INPUTS and sum(new_ns) > _ENOUGH_NS:
                break
    except Exception:  # it takes no other input of this form: nothing can be said
        return []
    if len(new_ns) < _LEAST_INPUTS or min(new_ns) < _SLOWER * median(again_ns):
        return []
    return [
        f"answers come from a cache: an input that was seen before takes {usual_ns / 1e6:.3g} ms, a new one "
        f"{min(new_ns) / 1e6:.3g} ms; so the measured time is that of the cache; turn the cache off"
    ]


def _new_inputs(data: Any) -> Iterator[Any]:
    """Inputs of the same size, all different; short ones have only a few. They are kept: a cache may go by `id`."""
    seen: dict[bytes, Any] = {}
    for turn in range(1, _MOST_INPUTS + 1):
        other = other_content(data, turn)
        mark = None if other is None else sha256(pickle.dumps(other)).digest()
        if mark is not None and mark not in seen:
            seen[mark] = other
            yield other
