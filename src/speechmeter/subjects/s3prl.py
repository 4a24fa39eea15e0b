"""Upstreams of s3prl that hear waveforms: built by their names from a configuration, with random weights.

s3prl's own checkpoints would have to be downloaded, and change nothing in the cost. Its front-ends (`fbank`, `mfcc`)
and the upstreams that stand on them (`mockingjay`, `tera`, `apc`) compute by torchaudio and are not to be had here:
"ImportError: cannot import name 'compute_deltas' from 'torchaudio.functional'" is what they end in without it.
"""

from __future__ import annotations

import re
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.plugins import nearest
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.installed import installed

UPSTREAMS = ("wav2vec2", "hubert", "wavlm", "data2vec", "distiller")
_BY_TORCHAUDIO = ("baseline", "fbank", "fbank_no_cmvn", "mfcc", "mel", "linear", "spectrogram", "mockingjay", "tera",
                  "audio_albert", "apc", "vq_apc", "npc", "cpc")  # fmt: skip
_HARMLESS = re.compile(r"[\w.-]+|[\d\s\[\](),+*]+")
"""s3prl evaluates some strings as Python (`conv_feature_layers`): one word, or arithmetic on lists of numbers."""


class S3prlSubject:
    """`s3prl:UPSTREAM`: copy → model, all hidden states as output."""

    summary = "s3prl upstreams: " + ", ".join(UPSTREAMS)
    axes: tuple[Axis, ...] = ()
    options = (Option(name="config"),)
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs s3prl and torch; torchaudio is not needed, although s3prl asks for it."""
        return installed("s3prl", "torch", "omegaconf", extra="s3prl")

    def check(self, case: Case) -> None:
        """The upstream must be known, and its configuration plain values."""
        source, config = case.subject.source, case.subject.options.get("config", {})
        if source in _BY_TORCHAUDIO:
            raise SubjectError(
                f"s3prl computes what {source} hears by torchaudio, which this adapter does without",
                fix="choose from: " + ", ".join(UPSTREAMS),
            )
        if source not in UPSTREAMS:
            raise SubjectError(f"there is no upstream {source!r} here", fix=nearest(source, list(UPSTREAMS)))
        if not isinstance(config, dict):
            raise SubjectError("config takes a mapping of configuration values", fix="config: {encoder_layers: 6}")
        for key, value in config.items():
            if not _plain(value):
                raise SubjectError(f"config: {key} takes a number, a word or lists of numbers, not {value!r}")

    def unavailable(self, case: Case) -> str | None:
        """Float32 and uncompiled: some upstreams convert to it, all collect hidden states by hooks."""
        if case.axes["dtype"] != "float32":
            return "s3prl's upstreams are measured in float32 only: some convert their input to it"
        if case.axes["compile"]:
            return "s3prl's upstreams collect hidden states by hooks, which torch.compile does not keep"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Build the upstream with random weights."""
        from speechmeter.subjects.s3prl_chain import prepare_chain

        return prepare_chain(case, device)


def _plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, int | float) for item in value)
    return isinstance(value, int | float) or (isinstance(value, str) and _HARMLESS.fullmatch(value) is not None)
