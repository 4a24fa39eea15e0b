"""SpeechBrain's inference interfaces: a directory with `hyperparams.yaml`, such a file, or a model of the hub.

Checkpoints that the file names are taken from the directory; what is missing keeps its random weights: same cost, no
meaning, and the record says so. Without tokenizer files the output is token ids.
"""

from __future__ import annotations

from speechmeter.core.axes import Axis, Option
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.common import WEIGHTS, installed
from speechmeter.subjects.hub import ask_hub
from speechmeter.subjects.speechbrain.sources import check_file, must_be_downloaded


class SpeechBrainSubject:
    """`speechbrain:DIR`: copy → features → model → decode, with the stages that the interface has apart."""

    summary = "SpeechBrain interfaces: a directory with hyperparams.yaml, which names code, or a hub id"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(name="type", kind=str, help="the interface class (default: the one named in the file)"),
        Option(name="overrides", kind=dict, default={}, help="changed hyperparameters, such as {num_spks: 2}"),
        WEIGHTS,
    )
    runs_code = True
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs speechbrain and torch; torchaudio is not needed, although speechbrain asks for it."""
        return installed("speechbrain", "torch", "hyperpyyaml", extra="speechbrain")

    def check(self, case: Case) -> None:
        """File, interface and modules must exist; the file is read as YAML, and nothing it names is built.

        A model that is on the hub and not in the local cache must exist there; it is downloaded when it is loaded.
        """
        if must_be_downloaded(case.subject.source):
            ask_hub("speechbrain", case.subject.source)
        else:
            check_file(case)

    def unavailable(self, case: Case) -> str | None:
        """The interfaces convert their input to float32."""
        if case.axes.dtype != "float32":
            return "SpeechBrain's interfaces run in float32 only, because they convert their input to it"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Build what hyperparams.yaml names, load the checkpoints that are here, wrap the interface."""
        from speechmeter.subjects.speechbrain.stages import prepare_chain

        return prepare_chain(case, device)
