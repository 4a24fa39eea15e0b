"""PAPI's presets through `python-papi` (imported as `pypapi`), for processors whose events we do not know ourselves.

Written against python-papi 6.0.0.2, which carries PAPI 6.0. It cannot set PAPI's `inherit`, so a thread that starts
after the counters are opened is not followed: a call that leaves one behind is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from speechmeter.core.errors import SensorError
from speechmeter.meters.hardware_flops.counters import HIDDEN, Counted, threads

_PROCESSOR = 0
"""PAPI's component of processor counters."""
_NO_EVENT = "PAPI_ENOEVNT"


@dataclass(frozen=True, kw_only=True)
class Papi:
    """What is used of the package: its low-level calls, the two presets, the base of its exceptions."""

    low: Any
    presets: tuple[int, ...]
    error: type[Exception]


def load() -> Papi:
    """Import and initialise PAPI; SensorError when it is not installed or does not work."""
    try:
        low, events = import_module("pypapi.papi_low"), import_module("pypapi.events")
        papi = Papi(
            low=low,
            presets=(events.PAPI_SP_OPS, events.PAPI_DP_OPS),
            error=import_module("pypapi.exceptions").PapiError,
        )
    except ModuleNotFoundError as error:
        raise SensorError("python-papi is not installed: pip install 'speechmeter[papi]'") from error
    except Exception as error:  # a missing C library, a name that another version does not have
        raise SensorError(f"python-papi cannot be imported: {' '.join(str(error).split())}") from error
    _asked(papi, low.library_init)
    _asked(papi, low.multiplex_init)
    return papi


@dataclass(frozen=True, kw_only=True)
class PapiCounter:
    """One running event set for each thread that there was when it was opened."""

    papi: Papi
    sets: dict[int, int]
    threads: Callable[[], frozenset[int]]

    def count(self, work: Callable[[], object]) -> Counted:
        """Single plus double precision over all threads. PAPI scales events that took turns and does not say so."""
        before = self._read()
        work()
        after = self._read()
        if not self.threads() <= self.sets.keys():
            raise SensorError("the call started threads, and python-papi does not follow new ones")
        return Counted(flops=float(after - before))

    def close(self) -> None:
        """Stop and free every event set."""
        for made in self.sets.values():
            _free(self.papi, made, running=True)

    def _read(self) -> int:
        return sum(sum(_asked(self.papi, partial(self.papi.low.read, made))) for made in self.sets.values())


class PapiBackend:
    """PAPI_SP_OPS and PAPI_DP_OPS on every thread."""

    name = "papi"

    def __init__(self, *, load: Callable[[], Papi] = load, threads: Callable[[], frozenset[int]] = threads) -> None:
        self._load = load
        self._threads = threads

    def open(self) -> PapiCounter:
        """Event sets attached to every thread."""
        papi = self._load()
        counter = PapiCounter(papi=papi, sets={}, threads=self._threads)
        try:
            for thread in sorted(self._threads()):
                counter.sets[thread] = _started(papi, thread)
        except SensorError:
            counter.close()
            raise
        return counter


def _started(papi: Papi, thread: int) -> int:
    """An event set that counts one thread. Both presets may need more counters than there are: they take turns."""
    low = papi.low
    made: int = _asked(papi, low.create_eventset)
    steps: Sequence[Callable[[], object]] = (
        partial(low.assign_eventset_component, made, _PROCESSOR),
        partial(low.set_multiplex, made),
        partial(low.attach, made, thread),
        *(partial(low.add_event, made, preset) for preset in papi.presets),
        partial(low.start, made),
    )
    try:
        for step in steps:
            _asked(papi, step)
    except SensorError:
        _free(papi, made, running=False)
        raise
    return made


def _free(papi: Papi, made: int, *, running: bool) -> None:
    low = papi.low
    for step in (*((low.stop,) if running else ()), low.cleanup_eventset, low.destroy_eventset):
        try:
            step(made)
        except papi.error:
            return  # a set that cannot be freed lives until the process ends, and counts nothing for us


def _asked(papi: Papi, step: Callable[[], Any]) -> Any:
    try:
        return step()
    except papi.error as error:
        text = " ".join(str(error).split())
        raise SensorError(HIDDEN if _NO_EVENT in text else text) from error
