"""One profile being taken: steps go to a recorder, what it finds goes to the profile, files are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from speechmeter.api.profiling.options import Options
from speechmeter.api.profiling.result import Profile

if TYPE_CHECKING:
    from speechmeter.api.profiling.recorder import Recorder


class Taking:
    """`run` holds steps that belong together, `step` is one of them; a step outside of a run is a run of its own."""

    def __init__(self, name: str, options: Options) -> None:
        self.profile = Profile(name, options)
        self._recorder: Recorder | None = None
        self._steps_done = 0
        self._depth = 0

    @property
    def options(self) -> Options:
        """What is recorded, of which steps."""
        return self.profile.options

    @options.setter
    def options(self, options: Options) -> None:
        self.profile.options = options

    @property
    def satisfied(self) -> bool:
        """Whether no further step is wanted."""
        seen = self._steps_done if self._recorder is None else self._recorder.steps_seen
        return self.options.schedule.phase(seen) == "done"

    @contextmanager
    def run(self, roots: Mapping[str, Any], *, apart: bool = False) -> Iterator[None]:
        """Steps may come while this is open; afterwards nothing is left of the profiler. A run inside is part of it."""
        if self._depth:
            yield
            return
        self._open(roots, apart)
        try:
            yield
        except BaseException as error:
            self.profile.failed = error
            raise
        finally:
            self.close()

    @contextmanager
    def step(self, roots: Mapping[str, Any]) -> Iterator[None]:
        """One step, a run of its own where none is open; a step inside another is part of it."""
        if self._depth > 1:
            yield
            return
        with self.run(roots, apart=True):
            self.begin()
            try:
                yield
            finally:
                self.end()

    def open(self, roots: Mapping[str, Any]) -> None:
        """Begin a run that `close` ends, for those who have no `with`."""
        if not self._depth:
            self._open(roots, apart=False)

    def _open(self, roots: Mapping[str, Any], apart: bool) -> None:
        from speechmeter.api.profiling.recorder import Recorder

        self._recorder = Recorder(self.options, roots, first=self._steps_done, apart=apart)
        self._recorder.counted = self.profile.counted
        self._depth = 1

    def begin(self) -> None:
        """A step begins. Without a run nothing happens."""
        if self._recorder is not None:
            self._depth = 2
            self._recorder.begin()

    def end(self) -> None:
        """It ended."""
        if self._recorder is not None:
            self._depth = 1
            self._recorder.end()

    def close(self) -> None:
        """The run ended; write the files if there are new findings."""
        recorder, self._recorder, self._depth = self._recorder, None, 0
        if recorder is None:
            return
        recorder.close()
        self._steps_done = recorder.steps_seen
        self.profile.take(recorder)
        if recorder.recordings and self.options.folder is not None:
            self.profile.export(self.options.folder)
