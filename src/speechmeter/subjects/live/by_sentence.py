"""`by-sentence:MODEL`: any model that turns text into sound, made live by speaking sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from speechmeter.core import plugins
from speechmeter.core.axes import OFFLINE, Axis, Option
from speechmeter.core.batches import output_of_chain
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import TEXT, Installed, Prepared
from speechmeter.core.types import Batch, Case, Speech
from speechmeter.subjects.live.hearing import Heard
from speechmeter.subjects.live.inner import check_inner, inner_case
from speechmeter.subjects.live.speaking import voice


class BySentenceSubject:
    """`by-sentence:PLUGIN:SOURCE`: the synthesiser behind it, live."""

    summary = "any synthesiser, made live sentence by sentence: by-sentence:transformers:vits"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(name="model", kind=dict, help=(
            "options and axes of the synthesiser after `by-sentence:`, such as {weights: random}"
        )),
    )  # fmt: skip
    runs_code = False
    takes = (TEXT,)

    def installed(self) -> Installed:
        """Always installed; its model answers for itself."""
        return Installed(version="built in")

    def check(self, case: Case) -> None:
        """There must be a model that takes text, and it must be sound itself."""
        check_inner(case, TEXT, "use a synthesiser")

    def unavailable(self, case: Case) -> str | None:
        """As the model says."""
        inner = inner_case(case)
        subject = plugins.subject(inner.subject.plugin)
        return subject.installed().missing or subject.unavailable(inner)

    def not_live(self, case: Case) -> str | None:
        """Always live."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the model, which all streams share."""
        inner = inner_case(case)
        model = plugins.subject(inner.subject.plugin).prepare(inner, device)
        if case.live is None or case.axes.pace == OFFLINE:
            return model

        def say(sentence: str) -> Iterator[Heard]:
            batch = Batch(data=(sentence,), items=1, ids=("live",), lengths=(len(sentence.split()),))
            sound = output_of_chain(model.stages, model.sync, batch)
            if not isinstance(sound, Speech):
                raise SubjectError(f"the output of the model is {type(sound).__name__}, not sound")
            yield Heard(kind="audio", sound=Speech(samples=_plain(sound), rate=sound.rate))

        made = voice(say, notes=model.notes, live=True)
        return replace(model, live=made.live, notes=made.notes)


def _plain(sound: Speech) -> object:
    """The samples as a row of numbers, whatever kind of array they are."""
    import numpy as np

    return np.asarray(sound.samples, dtype=np.float32).reshape(-1)
