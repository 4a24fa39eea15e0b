"""A profile in progress: steps go to a recorder, its findings to the profile, and files are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from speechmeter.api.profiling.options import Options
from speechmeter.api.profiling.result import Profile

if TYPE_CHECKING:
    from speechmeter.api.profiling.recorder import Recorder


class Taking:
    """`run` holds steps that belong together, `step` is one of them; a step outside of a run is a run of its own.

    Steps of an object are of kinds, by the method they are calls of; those of a function are of one kind, unnamed.
    """

    def __init__(self, name: str, options: Options) -> None:
        self.profile = Profile(options.name or name, options)
        self._recorder: Recorder | None = None
        self._depth = 0

    @property
    def satisfied(self) -> bool:
        """Whether the schedule wants no further step, where all are of one kind."""
        seen = self.profile.seen if self._recorder is None else self._recorder.seen.get("", 0)
        return self.profile.options.schedule.phase(seen) == "done"

    @contextmanager
    def run(self, roots: Mapping[str, Any], *, apart: bool = False) -> Iterator[None]:
        """Steps may come while this is open; afterwards nothing is left of the profiler. A run inside is part of it."""
        if self._depth:
            yield
            return
        self.open(roots, apart=apart)
        try:
            yield
        except BaseException as error:
            self.profile.failed = error
            raise
        finally:
            self.close()

    @contextmanager
    def step(self, roots: Mapping[str, Any], kind: str = "") -> Iterator[None]:
        """One step, a run of its own where none is open; a step inside another is part of it."""
        if self._depth > 1:
            yield
            return
        with self.run(roots, apart=True):
            self.begin(kind)
            try:
                yield
            except BaseException as error:
                self.profile.of(kind).failed = error
                raise
            finally:
                self.end()

    def open(self, roots: Mapping[str, Any], *, apart: bool = False) -> None:
        """Begin a run that `close` ends, for those who have no `with`."""
        if self._depth:
            return
        from speechmeter.api.profiling.recorder import Recorder

        options = self.profile.options
        named = {**options.modules, **{k: v for k, v in roots.items() if k not in options.modules}}
        self._recorder = Recorder(options, named, seen=self.profile.seen_by_kind, apart=apart)
        self._recorder.counted = self.profile.counted_by_kind
        self._depth = 1

    def begin(self, kind: str = "") -> None:
        """A step begins. Without a run nothing happens."""
        if self._recorder is not None:
            self._depth = 2
            self._recorder.begin(kind)

    def end(self) -> None:
        """It ended."""
        if self._recorder is not None:
            self._depth = 1
            self._recorder.end()

    def close(self, *, one_step: bool = False) -> None:
        """The run ended: take what was found, write the files, and call who waits for it.

        A run that is `one_step` by intention is not called cold: whoever wrote it knows what ran before.
        """
        recorder, self._recorder, self._depth = self._recorder, None, 0
        if recorder is None:
            return
        recorder.close()
        kept = self.profile.take(recorder)
        self.profile.cold = self.profile.cold and not one_step
        options = self.profile.options
        if kept and options.export is not None:
            self.profile.write(options.export)
        for recording in kept:
            for handler in options.on_trace_ready:
                handler(recording.profile)
