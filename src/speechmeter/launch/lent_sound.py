"""Sound files for an interpreter that cannot read them: this one reads them beforehand, the other gets the samples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace

from speechmeter.core.types import Case
from speechmeter.launch.carried import carried, starting
from speechmeter.launch.interpreters import about, reads_files
from speechmeter.workloads.lent import VARIABLE


class LentSound:
    """What was read for the other interpreters of a run, in a folder that is removed with it.

    All models of a run get the same samples in this way: another version of a library may decode or resample a little
    differently. A file that cannot be read is no error here: the reason is kept with the rest.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._read: set[str] = set()

    def variables(self, case: Case, python: str) -> dict[str, str]:
        """The variable that names the folder with the case's sound; none where that interpreter reads it itself."""
        if not reads_files(case) or not about(python).lacks_readers:
            return {}
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="speechmeter-sound-")
        asked = replace(case, subject=replace(case.subject, name="", options={}), meters=())
        if asked.id not in self._read:
            self._read.add(asked.id)
            # in a process of its own: nothing that was read before is remembered there, and its memory is given back
            subprocess.run(
                [sys.executable, *starting("speechmeter.workloads.lent", carried()), self._folder.name],
                input=json.dumps(case.to_json()), text=True, capture_output=True, check=False,
                env={key: value for key, value in os.environ.items() if key != VARIABLE},
            )  # fmt: skip
        return {VARIABLE: self._folder.name}

    def close(self) -> None:
        """Remove what was read."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
            self._read.clear()
