"""One round of a live case in this process: held by the engine, stored as it goes, and measured by the analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from speechmeter.analysis.live import measurements
from speechmeter.core import plugins
from speechmeter.core.axes import REALTIME
from speechmeter.core.batches import gathered
from speechmeter.core.outputs import Keep
from speechmeter.core.protocols import Meter, Subject, Workload
from speechmeter.core.types import Case
from speechmeter.engine.failures import classify, finite
from speechmeter.engine.live.measure import LiveRound, Surroundings, measure_live
from speechmeter.engine.live.round import Part, Script
from speechmeter.engine.live.utterance import Utterance
from speechmeter.engine.measure import Outcome
from speechmeter.store.exchanges import ExchangeWriter, exchange_file


def measure_live_case(
    case: Case,
    subject: Subject,
    workload: Workload,
    meters: Sequence[Meter],
    *,
    keep: Keep | None,
    round_: int = 0,
    report: Callable[[str], None] = lambda phase: None,
    waits: Callable[[float], None] = lambda seconds: None,
    start_s: float | None = None,
    part: Part | None = None,
) -> Outcome:
    """The outcome of one round. Its exchanges are in the folder of the case, if any is kept, whatever happens after.

    Of a `part` the metrics of conversations are left out: `clients.merged` makes them of all parts.
    """
    folder = None if keep is None else keep.of(case.id).folder
    writer = None if folder is None else ExchangeWriter(folder / exchange_file(round_))
    around = Surroundings(round=round_, sink=writer, report=report, waits=waits, start_s=start_s, part=part)
    held = measure_live(case, subject, workload, meters, around)
    try:
        if writer is not None:
            writer.close()
        return held.outcome if part is not None else _with_metrics(held)
    except Exception as error:
        status, reason = classify(error)
        return replace(held.outcome, status=status, reason=held.outcome.reason or reason)


def speech_s(case: Case) -> float:
    """Seconds that a round of a live case waits for speech, or for conversations to arrive; 0 for any other case.

    InputError for unusable data.
    """
    protocol = case.live
    if protocol is None or (case.axes.pace != REALTIME and not protocol.arrivals):
        return 0.0
    made = gathered(lambda: plugins.workload(case.workload.plugin).batches(case))
    # lengths alone: nothing is read for a batch that is only outlined
    said = [Utterance(name="", pcm=range(length or 0)) for batch in made.outlines() for length in batch.lengths]
    script, _ = Script.of_all(said, warmup_turns=protocol.warmup_turns, streams=case.axes.streams, seed="")
    return script.arriving(protocol, case.axes.rate).waits_s(protocol, case.axes.pace)


def _with_metrics(held: LiveRound) -> Outcome:
    if held.conditions is None:
        return held.outcome
    found = map(finite, measurements(held.exchanges, held.conditions))
    return replace(held.outcome, measurements=(*found, *held.outcome.measurements))
