"""Chains of subjects: names, glue, what each stage is fed, and stages that cannot be had."""

import numpy as np
import pytest
from conftest import make_case

from speechmeter.core.errors import SubjectError
from speechmeter.core.outputs import Keep
from speechmeter.core.protocols import Prepared
from speechmeter.core.stages import run_chain
from speechmeter.core.types import Batch, Segments, Spec, Speech, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters.latency import LatencyMeter
from speechmeter.subjects.cascade import CascadeSubject, joined, next_batch, stage_cases
from speechmeter.subjects.common import RATE

FED = Batch(
    data=np.arange(2 * RATE, dtype=np.float32).reshape(2, RATE),
    items=2,
    ids=("a", "b"),
    lengths=(RATE, RATE // 2),
    audio_s=1.5,
)


class Model:
    """Stands for torch's module: only identity matters."""


def asr():
    model = Model()
    return Prepared(
        stages=(
            Stage(name="features", fn=lambda batch: batch.items),
            Stage(name="model", fn=lambda items: [[7, 8, 9]] * items, modules={"model": model}, tokens=_count),
            Stage(name="decode", fn=lambda ids: ["one two three"] * len(ids)),
        ),
        modules={"model": model},
        notes=("synthetic",),
    )


def _count(ids):
    return sum(map(len, ids))


def tts():
    return Prepared(
        stages=(Stage(name="model", fn=lambda batch: [Speech(samples=np.zeros(8000), rate=8000) for _ in batch.data]),),
        data_dependent=True,
    )


def test_stages_carry_their_role_and_glue_is_outside_the_clock():
    chain = joined(["asr", "tts"], [asr(), tts()])
    assert [(stage.name, stage.clocked) for stage in chain.stages] == [
        ("asr.features", True),
        ("asr.model", True),
        ("asr.decode", True),
        ("asr→tts", False),
        ("tts.model", True),
    ]
    assert list(chain.modules) == ["asr"]
    assert chain.stages[1].modules == chain.modules
    assert chain.notes == ("asr: synthetic",)
    assert chain.data_dependent


def test_each_stage_is_fed_what_the_one_before_put_out():
    outputs = run_chain(joined(["asr", "tts"], [asr(), tts()]).stages, FED)
    glued = outputs[3]
    assert glued.data == ("one two three",) * 2
    assert (glued.ids, glued.lengths) == (("a", "b"), (3, 3))
    assert [sound.seconds for sound in outputs[-1]] == [1.0, 1.0]


def test_the_boundary_acts_on_the_stages_inside():
    class Both:
        def prepare(self, case, device):
            return joined(["asr", "tts"], [asr(), tts()])

        def batches(self, case):
            yield FED

    found = measure(make_case(boundary="model"), Both(), Both(), [LatencyMeter()], keep=Keep())
    assert found.status == "ok", found.reason
    rows = {(m.metric, m.scope): m for m in found.measurements}
    clocked = {scope: m.notes.get("clocked") for (metric, scope), m in rows.items() if metric == "latency.v1"}
    assert clocked["stage:asr.features"] is False
    assert clocked["stage:asr.model"] is True
    assert clocked["stage:asr→tts"] is False
    assert rows["tokens.v1", "total"].values == (6.0,)
    assert rows["tokens.v1", "stage:asr.model"].values == (6.0,)
    assert rows["audio_made_seconds.v1", "total"].values == (2.0,)


def test_sound_is_brought_to_the_rate_of_the_input():
    sounds = [Speech(samples=np.zeros(8000), rate=8000), Speech(samples=np.ones(4000), rate=8000)]
    batch = next_batch(sounds, FED, "tts")
    assert batch.data.shape == (2, RATE)
    assert batch.lengths == (RATE, RATE // 2)
    assert batch.audio_s == 1.5


def test_token_ids_and_segments_are_passed_on():
    assert next_batch([[1, 2], [3]], FED, "units").data == ((1, 2), (3,))
    batch = next_batch([[(0.25, 0.5), (0.75, 1.0)], []], FED, "vad")
    assert batch.ids == ("a-0", "a-1", "b-0")
    np.testing.assert_array_equal(batch.data[0, : RATE // 4], FED.data[0, RATE // 4 : RATE // 2])


def test_a_model_that_writes_nothing_passes_on_an_empty_text():
    batch = next_batch([[], [3]], FED, "asr")
    assert (batch.data, batch.lengths) == (((), (3,)), (0, 1))
    assert next_batch([[], []], FED, "asr").data == ((), ())


def test_recordings_without_speech_keep_a_moment_of_themselves():
    batch = next_batch([Segments(), Segments()], FED, "vad")
    assert batch.data.shape == (2, RATE // 10)


def test_an_output_that_nothing_takes_is_an_error_with_the_role():
    with pytest.raises(TypeError, match="the output of encoder is ndarray"):
        next_batch(np.zeros(3), FED, "encoder")


def cascade(*stages):
    return make_case(subject=Spec(plugin="cascade", name="chain", options={"stages": list(stages)}))


PYTHON = {"load": "python:speechmeter.subjects.known:layers"}


def test_a_stage_has_its_own_options_and_axes():
    case = cascade(
        {"name": "asr", "load": "transformers:whisper", "max_new_tokens": 5, "weights": "random"},
        {"name": "rest", **PYTHON},
    )
    first, second = stage_cases(case)
    assert first.subject.options == {"weights": "random"}
    assert first.axes["max_new_tokens"] == 5
    assert "max_new_tokens" not in second.axes
    assert first.workload == case.workload
    assert second.workload.name == "asr"


@pytest.mark.parametrize(
    ("stages", "what"),
    [
        ([{"name": "a", **PYTHON}], "at least two"),
        ([{"name": "a", **PYTHON}, {"name": "a", **PYTHON}], "is used twice"),
        ([{"name": "a.b", **PYTHON}, {"name": "c", **PYTHON}], "contains a dot"),
        ([{"name": "a", **PYTHON}, {"name": "b", "load": "python:nowhere.py:make"}], "stage b: there is no file"),
    ],
)
def test_bad_cascades_are_refused_with_the_stage(stages, what):
    with pytest.raises(SubjectError, match=what):
        CascadeSubject().check(cascade(*stages))
