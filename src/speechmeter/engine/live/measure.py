"""Measure one round of a live case in this process: load, warm up, hold the conversations, say what the client did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from time import monotonic, perf_counter
from typing import Any, Protocol

from speechmeter.core import metrics
from speechmeter.core.axes import REALTIME
from speechmeter.core.batches import Batches, gathered
from speechmeter.core.errors import SubjectError
from speechmeter.core.heap import hidden_from_collector
from speechmeter.core.live import TIMEOUT, Clock, Conditions, Exchange, Live
from speechmeter.core.protocols import Meter, Prepared, Subject, WatchingMeter, Workload
from speechmeter.core.quality import normaliser_id
from speechmeter.core.scope import PROCESS, Scope
from speechmeter.core.types import Case, Measurement, Speech, Status
from speechmeter.engine.disturbance import Watch, disturbances
from speechmeter.engine.environment import capture
from speechmeter.engine.failures import classify, finite
from speechmeter.engine.live.clock import run
from speechmeter.engine.live.conversation import Manner
from speechmeter.engine.live.hearing import Ear, repeated
from speechmeter.engine.live.round import Part, Round, Script
from speechmeter.engine.live.utterance import utterances_of
from speechmeter.engine.measure import Outcome
from speechmeter.engine.phases import MAIN
from speechmeter.engine.session import Progress

_REPORT_S = 0.5
ALL_FAILED = "every conversation failed"
"""How the reason of a round begins that no conversation survived."""
_NOT_WATCHING = "this meter calls the model itself, so it cannot measure a live case; use `pace: offline`"
_SHARING = {
    "process": "each stream runs in a separate process",
    "thread": "all streams run in one process, each conversation in a separate thread",
    "shared": "all streams share one process and one model",
}


class Sink(Protocol):
    """Where exchanges go, each when it is finished."""

    def begin(self, conditions: Conditions) -> None:
        """Called once, before the first exchange."""
        ...

    def take(self, exchange: Exchange) -> None:
        """An exchange that is finished."""
        ...

    def hear(self, heard: Sequence[str | None]) -> None:
        """What a recogniser understood of each exchange so far, in their order. Called once, after the last."""
        ...


@dataclass(frozen=True, kw_only=True)
class LiveRound:
    """What one round gave: the outcome without the metrics of conversations, and the exchanges these follow from.

    Without conditions no conversation was held.
    """

    outcome: Outcome
    conditions: Conditions | None = None
    exchanges: tuple[Exchange, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a round of a live case needs to know of whoever runs it.

    `waits` is called with the seconds that the round will spend waiting for speech, so that they do not count against a
    limit of time. `part` is the share of the round that is held here, where there are several clients. `save` gets the
    sound of each answer by its utterance, once all conversations have ended.
    """

    round: int = 0
    sink: Sink | None = None
    report: Progress = lambda _: None
    waits: Callable[[float], None] = lambda seconds: None
    start_s: float | None = None
    save: Callable[[str, Speech], None] | None = None
    part: Part | None = None


def measure_live(
    case: Case, subject: Subject, workload: Workload, meters: Sequence[Meter], around: Surroundings = Surroundings()
) -> LiveRound:
    """One round. A failure keeps what was heard before it; none is raised. KeyboardInterrupt passes through."""
    return _LiveAttempt(case=case, subject=subject, workload=workload, meters=meters, around=around).measure()


@dataclass(kw_only=True)
class _LiveAttempt:
    case: Case
    subject: Subject
    workload: Workload
    meters: Sequence[Meter]
    around: Surroundings
    found: list[Measurement] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    conditions: Conditions | None = None
    _ear: Ear | None = None

    def measure(self) -> LiveRound:
        if self.around.start_s is not None:
            self.phases["start"] = self.around.start_s
        status: Status = "ok"
        reason = ""
        prepared: Prepared | None = None
        try:
            batches = self._timed("data", lambda: gathered(lambda: self.workload.batches(self.case)))
            prepared = self._timed("load", lambda: self.subject.prepare(self.case, self.case.axes.device))
            self.found.append(Measurement.of(metrics.LATENCY_LOAD, [self.phases["load"]]))
            self._hold(prepared, batches)
            self._listen()
            status, reason = judged([exchange for exchange in self.exchanges if not exchange.warm_up])
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit of a model is a failed case, not the end of the run
            status, reason = classify(error)
        finally:
            self._close(prepared)
        return LiveRound(
            outcome=self._outcome(status, reason), conditions=self.conditions, exchanges=tuple(self.exchanges)
        )

    def _hold(self, prepared: Prepared, batches: Batches) -> None:
        """Warm up and hold all conversations."""
        case, protocol = self.case, self.case.live
        if prepared.live is None or protocol is None:
            raise SubjectError(
                f"{case.subject.name} cannot be measured live: its `prepare` returned no `live`",
                fix="return a `Prepared` with `live`, or remove `pace`",
            )
        live = prepared.live
        script, warned = Script.of_all(
            list(utterances_of(batches, case.axes.text_pace)),
            warmup_turns=protocol.warmup_turns,
            streams=case.axes.streams,
            seed=f"{protocol.seed}/{self.around.round}",
        )
        script = script.arriving(protocol, case.axes.rate)
        if self.around.part is not None:
            script = script.share(self.around.part)
        self.warnings += [*batches.warnings, *warned]
        self._ear = Ear.of(case)
        self.conditions = conditions_of(case, live, reads=script.measured[0].text is not None)
        if self.around.sink is not None:
            self.around.sink.begin(self.conditions)
        chunk_s = 1 / case.axes.text_pace if case.axes.text_pace else case.axes.chunk_s
        manner = Manner(live=live, protocol=protocol, pace=case.axes.pace, chunk_s=chunk_s)
        if not live.virtual and (waits_s := script.waits_s(protocol, manner.pace)):
            self.around.waits(waits_s)
        processes = live.processes or tuple
        before = Watch.now(processes())
        held = self._round(script, manner)
        self.found += held.watch.measurements(manner.pace)
        self.warnings += held.watch.warnings(manner.pace, manner.chunk_s) or self._late_requests(held)
        if not live.virtual:
            busy, disturbed = disturbances(before, Watch.now(processes()))
            self.found += busy
            self.warnings += disturbed
        self.found += self._facts(prepared, batches, live)
        self.warnings += repeated(self.exchanges) if self.around.part is None else ()

    def _listen(self) -> None:
        """What a recogniser hears of the sound, and its files: after all conversations, so that none waits for it."""
        if self._ear is not None:
            self.around.report("hearing the speech")
            started_s = perf_counter()
            self.exchanges, warned = self._ear.hear(self.exchanges)
            self.warnings += warned
            self.phases["hearing"] = perf_counter() - started_s
            if self.around.sink is not None:
                self.around.sink.hear([exchange.heard for exchange in self.exchanges])
        if self.around.save is not None:
            for exchange in self.exchanges:
                if exchange.speech is not None and not exchange.warm_up:
                    self.around.save(exchange.utterance, exchange.speech)
        self.exchanges = [replace(exchange, speech=None) for exchange in self.exchanges]

    def _late_requests(self, held: Round) -> list[str]:
        """That the client was late, of several requests at once to a server. An engine here takes CPU time itself."""
        several = held.script.arrivals is not None or held.script.of > 1
        if held.manner.pace == REALTIME or held.manner.live.isolation != "shared" or not several:
            return []
        return held.watch.late_requests([one.ended_s for one in self.exchanges if not one.warm_up and not one.error])

    def _round(self, script: Script, manner: Manner) -> Round:
        """All conversations, watched by the meters that can. What is there before is hidden from garbage collection:
        going through all objects of a model's libraries would make sends late.
        """

        async def work(clock: Clock) -> Round:
            here = Round(script=script, manner=manner, clock=clock, take=self._take, report=_Seldom(self.around.report))
            started_s = perf_counter()
            if script.warm_up:
                self.around.report("warm-up")
                await here.warm()
                self.phases["warm-up"] = perf_counter() - started_s
            begin_s = None if self.around.part is None else _begun(here, self.around.part)
            with ExitStack() as watching:
                readings = [watching.enter_context(context) for context in self._watching(manner.live)]
                started_s = perf_counter()
                await here.hold(begin_s)
                self.phases["conversations"] = perf_counter() - started_s
            self.found += [reading for group in readings for reading in group]
            return here

        with hidden_from_collector():
            return run(work, virtual=manner.live.virtual)

    def _watching(self, live: Live) -> list[AbstractContextManager[list[Measurement]]]:
        """What the meters watch with; those that cannot are unavailable, with the reason."""
        found = []
        for meter in self.meters:
            if not isinstance(meter, WatchingMeter):
                self.found += [Measurement.absent(metric, _NOT_WATCHING) for metric in meter.metrics[:1]]
            elif (reason := meter.unavailable(self.case)) is not None:
                self.found += [Measurement.absent(metric, reason) for metric in meter.metrics[:1]]
            else:
                found.append(meter.watching(self.case, live))
        return found

    def _take(self, exchange: Exchange) -> None:
        """Keep it, with its sound where that is still to be heard or saved."""
        if self._ear is None and self.around.save is None:
            exchange = replace(exchange, speech=None)
        self.exchanges.append(exchange)
        if self.around.sink is not None:
            self.around.sink.take(exchange)

    def _facts(self, prepared: Prepared, batches: Batches, live: Live) -> list[Measurement]:
        """What a reader must know: notes of model and input, what streams share, and how much was said."""
        measured = [exchange for exchange in self.exchanges if not exchange.warm_up]
        if not measured:  # one of several clients, which no conversation fell to
            return list(prepared.found)
        sharing = (
            [f"{self.case.axes.streams} streams: {_SHARING[live.isolation]}"] if self.case.axes.streams > 1 else []
        )
        virtual = ["simulated on a virtual clock: no real time passed"] if live.virtual else []
        sources = sorted({exchange.anchors.source for exchange in measured if exchange.anchors.source})
        anchors = [f"start and end of speech: {', '.join(sources)}"] if sources else []
        texts = [*prepared.notes, *batches.notes, *sharing, *virtual, *anchors]
        items = [1.0] * len(measured)
        facts = [Measurement.of(metrics.ITEMS, items, notes={"notes": texts} if texts else {})]
        if not all(exchange.text is not None for exchange in measured):
            facts.append(Measurement.of(metrics.AUDIO_SECONDS, [exchange.audio_s for exchange in measured]))
        left_out = batches.left_out
        if left_out is not None:
            notes: dict[str, Any] = {"refused": [list(item) for item in left_out.first]} if left_out.count else {}
            facts.append(Measurement.of(metrics.ITEMS_REFUSED, [float(left_out.count)], notes=notes))
        return [*facts, *prepared.found]

    def _timed(self, phase: str, work: Callable[[], Any]) -> Any:
        self.around.report(phase)
        start_s = perf_counter()
        made = work()
        self.phases[phase] = perf_counter() - start_s
        return made

    def _close(self, prepared: Prepared | None) -> None:
        """What was heard counts, whatever the subject does when it is closed."""
        try:
            if prepared is not None:
                prepared.close()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.warnings.append(f"closing the model failed: {classify(error)[1]}")

    def _outcome(self, status: Status, reason: str) -> Outcome:
        names = {"phases": list(self.phases)}
        if self.phases:
            scope = Scope.of(PROCESS, MAIN)
            self.found.append(Measurement.of(metrics.PHASE, list(self.phases.values()), scope=scope, notes=names))
        try:
            environment = capture(self.case)
        except Exception:  # as with a device that was lost
            environment = None
        return Outcome(
            status=status,
            reason=reason,
            measurements=tuple(map(finite, self.found)),
            warnings=tuple(self.warnings),
            environment=environment,
        )


def conditions_of(case: Case, live: Live, *, reads: bool = False) -> Conditions:
    """How the conversations of a case are held, for whoever computes their metrics."""
    protocol = case.live
    assert protocol is not None
    quality = protocol.quality
    return Conditions(
        pace="realtime" if case.axes.pace == REALTIME else "fast",
        chunk_s=case.axes.chunk_s,
        turn_end=protocol.turn_end,
        quiet_s=protocol.quiet_s,
        streams=case.axes.streams,
        arrivals=protocol.arrivals,
        normaliser=normaliser_id(None if quality is None else quality.normaliser),
        fixed_cadence=live.fixed_cadence,
        append_only=live.append_only,
        finishes=live.finishes,
        endpoints=live.endpoints,
        texts=live.texts,
        speaks=live.speaks,
        reads=reads,
        text_pace=case.axes.text_pace if reads else None,
        prebuffer_s=protocol.prebuffer_s,
        heard_by=str(protocol.heard_by.get("name", "")),
        interrupts=live.interrupts and protocol.interrupt_s is not None,
    )


def _begun(here: Round, part: Part) -> float:
    """The moment at which all clients begin, from which the moments of this one are counted too."""
    here.zero_s = part.begin()
    late_s = here.clock.now() - here.zero_s
    if late_s > 0:
        raise SubjectError(
            f"client {part.index + 1} of {part.of} was not ready when the round started: it was {late_s:.3g} s late",
            fix="close other programs on its machine",
        )
    return here.zero_s


def judged(measured: Sequence[Exchange]) -> tuple[Status, str]:
    """A system that is too slow is measured; one that fails in every conversation is not."""
    if measured and all(exchange.error for exchange in measured):
        broken = [exchange for exchange in measured if exchange.error_kind != TIMEOUT]
        if broken:
            return "error", f"{ALL_FAILED}; the first: {broken[0].error}"
    return "ok", ""


class _Seldom:
    """Reports at most twice a second: each report is a message to another process."""

    def __init__(self, report: Progress) -> None:
        self._report, self._latest_s = report, 0.0

    def __call__(self, line: str) -> None:
        if monotonic() - self._latest_s >= _REPORT_S:
            self._latest_s = monotonic()
            self._report(line)
