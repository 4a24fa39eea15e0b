"""The subjects of the zoo: what a plan names by a bare word. Imports no torch until a model is prepared."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, final

from speechmeter.core.axes import LATE_QUANTIZE, Axis, Option
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.common import check_no_source, installed, torch_quantizing

if TYPE_CHECKING:
    from speechmeter.subjects.zoo.chain import Parts


class ZooSubject:
    """An encoder of our own: no source, no download, random weights."""

    name: ClassVar[str]
    summary: str
    axes: tuple[Axis, ...] = (LATE_QUANTIZE,)
    options: tuple[Option, ...] = ()
    runs_code = False
    takes = (SOUND,)
    network: ClassVar[str] = "transformer"
    """`file:function` beside this file, which builds the model."""
    on_log_mel: ClassVar[bool] = True
    """Whether the model is fed log-mel frames; the waveform as it is otherwise."""
    shortest_s: ClassVar[float] = 0.0
    """Shorter audio gives no frame at all."""

    def parts(self, options: Mapping[str, Any]) -> Parts:
        """The model with what computes its input and reads its output."""
        from speechmeter.subjects.zoo.chain import Parts

        file, _, function = self.network.partition(":")
        model = getattr(import_module(f"speechmeter.subjects.zoo.{file}"), function)()
        return Parts.on_log_mel(model) if self.on_log_mel else Parts.on_waveform(model)

    @final
    def installed(self) -> Installed:
        """Needs torch."""
        return installed("torch", extra="torch")

    def check(self, case: Case) -> None:
        """It takes no source."""
        check_no_source(case)

    def unavailable(self, case: Case) -> str | None:
        """Audio may be too short for the convolutions; int8 is for float32 weights on the CPU."""
        if case.axes.get("seconds", self.shortest_s) < self.shortest_s:
            return f"{self.name} needs at least {self.shortest_s:g} s of audio"
        return torch_quantizing(case)

    def libraries(self, case: Case) -> tuple[str, ...]:
        """torch, by way of the chain that all models of the zoo have."""
        return ("speechmeter.subjects.zoo.chain", f"speechmeter.subjects.zoo.{self.network.partition(':')[0]}")

    @final
    def prepare(self, case: Case, device: str) -> Prepared:
        """Build it on the device."""
        from speechmeter.subjects.zoo.chain import prepare_chain

        return prepare_chain(self.name, lambda: self.parts(case.subject.options), case, device)


class LogMelSubject(ZooSubject):
    """`log-mel`: spectrum, mel bands, logarithm. No parameters, real arithmetic."""

    name = "log-mel"
    summary = "built-in log-mel front-end, 80 bands"
    axes = ()  # it has no weights to quantise

    def unavailable(self, case: Case) -> str | None:
        """torch has no Fourier transform in half precision on the CPU."""
        if case.axes.dtype != "float32":
            return "log-mel runs in float32 only, because torch has no Fourier transform in half precision on the CPU"
        return super().unavailable(case)

    network = "chain:LogMel"
    on_log_mel = False


class MockingjaySubject(ZooSubject):
    """`mockingjay`: s3prl's default, the large one."""

    name = "mockingjay"
    summary = "built-in Mockingjay, 85.1 M parameters: 12 layers on log-mel, random weights"
    network = "transformer:mockingjay"


class TeraSubject(ZooSubject):
    """`tera`: s3prl's default, the base one."""

    name = "tera"
    summary = "built-in TERA base, 21.3 M parameters: 3 layers on log-mel, random weights"
    network = "transformer:tera"


class WaveEncoderSubject(ZooSubject):
    """wav2vec 2.0 base and HuBERT base, which are one network."""

    shortest_s = 0.025

    @final
    def parts(self, options: Mapping[str, Any]) -> Parts:
        """On the levelled waveform."""
        from speechmeter.subjects.zoo import chain, transformer

        return chain.Parts.on_waveform(transformer.WaveEncoder(), levelled=True)


class Wav2Vec2Subject(WaveEncoderSubject):
    """`wav2vec2`: base."""

    name = "wav2vec2"
    summary = "built-in wav2vec 2.0 base, 94.4 M parameters: 12 layers on the waveform, random weights"


class HubertSubject(WaveEncoderSubject):
    """`hubert`: base."""

    name = "hubert"
    summary = "built-in HuBERT base, 94.4 M parameters: 12 layers on the waveform, random weights"


class ApcSubject(ZooSubject):
    """`apc`: s3prl's."""

    name = "apc"
    summary = "built-in APC, 4.1 M parameters: 3 recurrent layers on log-mel, random weights"
    network = "recurrent:AutoregressivePredictor"


class CpcSubject(ZooSubject):
    """`cpc`: the modified one."""

    name = "cpc"
    summary = "built-in modified CPC, 1.8 M parameters: convolutions and an LSTM on the waveform, random weights"
    shortest_s = 0.01
    network = "recurrent:ContrastivePredictor"
    on_log_mel = False


class ConformerCtcSubject(ZooSubject):
    """`conformer-ctc`: a recogniser; its output is token ids."""

    name = "conformer-ctc"
    summary = "built-in Conformer with CTC, 12 × 256 on log-mel, random weights; option vocabulary (500)"
    options = (Option(name="vocabulary", kind=int, default=500, minimum=2, help="number of tokens, blank included"),)
    shortest_s = 0.06

    def parts(self, options: Mapping[str, Any]) -> Parts:
        """On log-mel frames, decoded greedily."""
        from speechmeter.subjects.zoo import chain, conformer

        return chain.Parts.on_log_mel(
            conformer.ConformerCtc(vocabulary=options.get("vocabulary", 500)), decode=conformer.greedy
        )
