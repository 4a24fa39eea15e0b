"""Several client processes that hold one round of a live case together, each its share of the streams.

All begin at one moment, once all are ready. Each counts moments from it on the clock of its own machine, so durations
need no common clock; how far the machines disagree about that moment is measured and recorded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, sleep
from typing import Protocol

from speechmeter.analysis.live import measurements
from speechmeter.core import metrics
from speechmeter.core.errors import StoreError
from speechmeter.core.live import Exchange
from speechmeter.core.outputs import Keep
from speechmeter.core.types import Case, Measurement
from speechmeter.engine.failures import finite
from speechmeter.engine.live.hearing import repeated
from speechmeter.engine.live.measure import ALL_FAILED, judged
from speechmeter.engine.measure import Outcome
from speechmeter.engine.outputs import SOUND_SUFFIX
from speechmeter.launch.share import Share
from speechmeter.store.exchanges import ExchangeLog, ExchangeWriter, exchange_file, read_exchanges

_AHEAD_S = 1.0
"""From when all are ready to when all begin: the moment has to reach every client before."""
_POLL_S = 0.01
_WORST = (metrics.CLIENT_SLIP_P50, metrics.CLIENT_SLIP_P99, metrics.CLIENT_SLIP_MAX, metrics.CLIENT_LAG_P99,
          metrics.CLIENT_LAG_MAX, metrics.CLIENT_BUSY)  # fmt: skip
"""What is recorded of the client for which it is the largest."""


@dataclass(frozen=True, kw_only=True)
class ClientResult:
    """What a client measured, and its exchanges, where it came so far. `clock` says how its clock was compared, and
    `sounds` has the sound files that it wrote, by name.
    """

    outcome: Outcome
    log: ExchangeLog | None
    clock: str = ""
    sounds: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, outcome: Outcome, exchanges: Path, clock: str = "") -> ClientResult:
        """That of a client whose exchange file is at this path, with its sound beside it."""
        sounds = {path.name: path.read_bytes() for path in sorted(exchanges.parent.glob(f"*{SOUND_SUFFIX}"))}
        with suppress(StoreError):
            return cls(outcome=outcome, log=read_exchanges(exchanges), clock=clock, sounds=sounds)
        return cls(outcome=outcome, log=None, clock=clock, sounds=sounds)


class Client(Protocol):
    """A client process somewhere, which has been started."""

    def is_ready(self) -> bool:
        """Whether it waits for the common start, or has ended."""
        ...

    def begin(self, moment_s: float) -> None:
        """Tell it to begin at that moment of this process's `perf_counter`."""
        ...

    def result(self) -> ClientResult:
        """What it measured; waits for its end."""
        ...

    def stop(self) -> None:
        """End it, wherever it is."""
        ...


def clients_of(case: Case) -> int:
    """How many clients hold a case: never more than there are streams."""
    if case.live is None:
        return 1
    return case.live.clients if case.live.arrivals else min(case.live.clients, case.axes.streams)


def hold_together(clients: Sequence[Client]) -> list[ClientResult]:
    """What the clients measured. Whatever happens, none is left."""
    with ExitStack() as ending:
        for client in clients:
            ending.callback(client.stop)
        while not all(client.is_ready() for client in clients):
            sleep(_POLL_S)
        begin_s = perf_counter() + _AHEAD_S
        for client in clients:
            client.begin(begin_s)
        return [client.result() for client in clients]


class LocalClient:
    """A client process on this machine. `run` starts it with its share, and blocks until it has ended."""

    def __init__(self, share: Share, keep: Keep, case: Case, round_: int, run: Callable[[Share, Keep], Outcome],
                 stop: Callable[[], None]) -> None:  # fmt: skip
        self._share, self._stop = share, stop
        self._file = self.folder / case.id / exchange_file(round_)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="client")
        self._outcome: Future[Outcome] = self._pool.submit(run, share, replace(keep, folder=self.folder))

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._share.folder / "artifacts"

    def is_ready(self) -> bool:
        """Whether it waits for the common start, or has ended."""
        return self._share.is_ready() or self._outcome.done()

    def begin(self, moment_s: float) -> None:
        """The clock of this machine is that of all its processes."""
        self._share.begin(moment_s)

    def result(self) -> ClientResult:
        """What it measured; waits for its end."""
        return ClientResult.of(self._outcome.result(), self._file)

    def stop(self) -> None:
        """End it, if it has not ended."""
        while not self._outcome.done():
            self._stop()
            sleep(_POLL_S)
        self._pool.shutdown()


def shares(count: int) -> tuple[tempfile.TemporaryDirectory[str], list[Share]]:
    """A folder that is removed when it is closed, and the shares of so many clients in it."""
    root = tempfile.TemporaryDirectory(prefix="speechmeter-clients-")
    folders = [Path(root.name) / str(index) for index in range(count)]
    for folder in folders:
        folder.mkdir()
    return root, [Share(index=index, of=count, folder=folder) for index, folder in enumerate(folders)]


def merged(case: Case, round_: int, results: Sequence[ClientResult], keep: Keep) -> Outcome:
    """The outcome of the round: all exchanges, and the metrics of all. Where a client could not hold its share, the
    load was not that of the case: it is an error without metrics of conversations.
    """
    logs = [one.log for one in results if one.log is not None]
    exchanges = sorted((one for log in logs for one in log.exchanges), key=_ended_s)
    if logs and keep.folder is not None:
        _store(keep.folder / case.id / exchange_file(round_), logs[0], exchanges)
        for name, sound in {name: sound for one in results for name, sound in one.sounds.items()}.items():
            (keep.folder / case.id / name).write_bytes(sound)
    measured = [one for one in exchanges if not one.warm_up]
    found = [finite(one) for one in measurements(exchanges, logs[0].conditions)] if logs and measured else []
    status, reason = judged(measured)
    for number, one in enumerate(results, start=1):
        if why := _failure(one):
            status = one.outcome.status if one.outcome.status != "ok" else "error"
            reason, found = f"client {number} of {len(results)}: {why}", []
            break
    return Outcome(
        status=status,
        reason=reason,
        measurements=(*found, *_of_clients(results, measured)),
        warnings=(*dict.fromkeys(text for one in results for text in one.outcome.warnings), *repeated(exchanges)),
        environment=next((one.outcome.environment for one in results if one.outcome.environment), None),
    )


def _failure(one: ClientResult) -> str:
    """Why a client did not hold its share, or why that is not known; empty where it did."""
    if one.outcome.status != "ok" and not one.outcome.reason.startswith(ALL_FAILED):
        return one.outcome.reason
    return "its file of conversations is missing or damaged" if one.log is None or one.log.torn else ""


def _ended_s(exchange: Exchange) -> float:
    return exchange.started_s + exchange.ended_s


def _store(path: Path, log: ExchangeLog, exchanges: Sequence[Exchange]) -> None:
    writer = ExchangeWriter(path)
    writer.begin(log.conditions)
    for exchange in exchanges:
        writer.take(exchange)
    if any(exchange.heard is not None for exchange in exchanges):
        writer.hear([exchange.heard for exchange in exchanges])
    writer.close()


def _of_clients(results: Sequence[ClientResult], measured: Sequence[Exchange]) -> list[Measurement]:
    """What the first client read besides, the worst client's lateness, and a note on how the load was made."""
    found = []
    worst = {metric.id for metric in _WORST}
    for one in results[0].outcome.measurements:
        if one.metric in worst:
            same = [read for each in results for read in each.outcome.measurements if read.metric == one.metric]
            values = [read.values[0] for read in same if read.values]
            found.append(replace(one, values=(max(values),), notes={**one.notes, "clients": values}))
        elif one.metric == metrics.ITEMS.id:
            texts = [*one.notes.get("notes", ()), _made_by(results)]
            found.append(replace(one, values=(1.0,) * len(measured), notes={**one.notes, "notes": texts}))
        elif one.metric == metrics.AUDIO_SECONDS.id:
            found.append(replace(one, values=tuple(exchange.audio_s for exchange in measured)))
        else:
            found.append(one)
    return found


def _made_by(results: Sequence[ClientResult]) -> str:
    clocks = [one.clock for one in results if one.clock]
    return f"the load came from {len(results)} client processes" + (f": {'; '.join(clocks)}" if clocks else "")
