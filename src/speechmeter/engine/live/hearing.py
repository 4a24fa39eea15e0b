"""What a recogniser understands of speech that a system made, and which texts it was given more than once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from speechmeter.core import plugins
from speechmeter.core.axes import LIVE_AXES, Axes, axis_names
from speechmeter.core.batches import text_of
from speechmeter.core.live import Exchange
from speechmeter.core.protocol import RepeatsProtocol
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Case, Spec, Speech
from speechmeter.engine.failures import classify
from speechmeter.engine.live.utterance import RATE


@dataclass(frozen=True, kw_only=True)
class Ear:
    """The recogniser that a plan names under `heard_by`, as a case of its own, which is not live."""

    case: Case

    @classmethod
    def of(cls, case: Case) -> Ear | None:
        """That of a live case; None where no recogniser is named."""
        if case.live is None or not case.live.heard_by:
            return None
        return cls(case=ear_case(case))

    def hear(self, exchanges: Sequence[Exchange]) -> tuple[list[Exchange], list[str]]:
        """The exchanges with what was understood in each that has sound, and a warning where hearing failed."""
        subject = plugins.subject(self.case.subject.plugin)
        found, warned = list(exchanges), []
        prepared: Prepared | None = None
        try:
            prepared = subject.prepare(self.case, self.case.axes.device)
            for place, one in enumerate(found):
                if one.speech is not None and not one.warm_up:
                    found[place] = replace(one, heard=_heard(prepared, one.speech))
        except Exception as error:
            warned.append(f"{self.case.subject.name} could not transcribe the sound: {classify(error)[1]}")
        finally:
            if prepared is not None:
                prepared.close()
        return found, warned


def ear_case(case: Case) -> Case:
    """The case of the recogniser of a live case: offline, on the same device, with its own axes at their defaults."""
    assert case.live is not None
    given = dict(case.live.heard_by)
    plugin, _, source = str(given.pop("load")).partition(":")
    name = str(given.pop("name"))
    subject = plugins.subject(plugin)
    axes = {axis.name: given.pop(axis.name, axis.default) for axis in subject.axes}
    live = axis_names(LIVE_AXES)
    shared = {name: value for name, value in case.axes.items() if name not in live}
    return replace(
        case,
        subject=Spec(plugin=plugin, name=name, source=source, options=given),
        axes=Axes({**axes, **shared}),
        protocol=RepeatsProtocol(discard=0, samples=1, seed=case.live.seed),
    )


def repeated(exchanges: Sequence[Exchange]) -> list[str]:
    """A warning where a text was sent again in a round: a server may answer from a cache."""
    texts = [one.text for one in exchanges if one.text is not None]
    again = len(texts) - len(set(texts))
    if not again:
        return []
    return [
        f"{again} of {len(texts)} texts had been sent before in the same round; a system with a cache answers these "
        "faster; use more texts"
    ]


def _heard(prepared: Prepared, speech: Speech) -> str:
    import numpy as np
    import soxr

    samples = np.asarray(speech.samples, dtype=np.float32)
    samples = samples if speech.rate == RATE else soxr.resample(samples, speech.rate, RATE)
    return text_of(prepared.stages, prepared.sync, samples, RATE)
