"""FLOPs of models that generate: what is counted on shapes alone is what a real run computes."""

import pytest
from conftest import make_case
from tiny_models import SMALL, entry

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from speechmeter.core import plugins
from speechmeter.core.protocols import ORDINARY
from speechmeter.core.types import Spec
from speechmeter.engine.measure import measure
from speechmeter.meters.flops.meter import FlopsMeter

SOUND = Spec(plugin="audio", name="sample", source="sample")
TEXT = Spec(plugin="text", name="text", options={"vocabulary": 500, "count": 2})
ON_SHAPES, REALLY = "shapes alone", "a real run"
IN_THE_CASCADE = pytest.mark.campaign  # its stages have these beams and this decoder


def counted(case, **ways):
    subject, workload = plugins.subject(case.subject.plugin), plugins.workload(case.workload.plugin)
    outcome = measure(case, subject, workload, [FlopsMeter()], **ways)
    assert outcome.status == "ok", outcome.reason
    return next(m for m in outcome.measurements if (m.metric, m.scope) == ("flops.v1", "total"))


@pytest.mark.parametrize(
    ("kind", "options", "fed", "axes", "how"),
    [
        ("wav2vec2-bert", {"head": "ctc"}, SOUND, {}, ON_SHAPES),
        ("hubert", {"head": "units"}, SOUND, {}, ON_SHAPES),
        ("speech_to_text", {}, SOUND, {}, ON_SHAPES),
        pytest.param("speech_to_text", {}, SOUND, {"beam": 3}, ON_SHAPES, marks=IN_THE_CASCADE),
        ("speech_to_text", {}, SOUND, {"beam": 2, "max_new_tokens": None, "max_len_a": 0.2, "max_len_b": 1}, ON_SHAPES),
        ("marian", {}, TEXT, {}, ON_SHAPES),
        pytest.param("marian", {}, TEXT, {"beam": 2}, ON_SHAPES, marks=IN_THE_CASCADE),
        ("parakeet_rnnt", {}, SOUND, {}, REALLY),
        pytest.param("speecht5", {"head": "s2st", "vocoder": "random"}, SOUND, {}, ON_SHAPES, marks=IN_THE_CASCADE),
        ("fastspeech2_conformer_with_hifigan", {}, TEXT, {}, ON_SHAPES),
        ("vits", {}, TEXT, {}, REALLY),
        ("seamless_m4t", {"head": "s2st"}, SOUND, {}, REALLY),  # its second encoder asks whether the text has padding
        ("seamless_m4t_v2", {"head": "tts"}, TEXT, {}, REALLY),
        ("seamless_m4t", {"head": "vocoder"}, TEXT, {}, ON_SHAPES),
        ("dac", {}, SOUND, {}, ON_SHAPES),
        ("mimi", {}, SOUND, {}, ON_SHAPES),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_shapes_alone_give_the_count_of_a_real_run(kind, options, fed, axes, how):
    subject = Spec(plugin="transformers", name=kind, source=kind, options={"config": SMALL[kind], **options})
    axes = {"batch": 2, "seconds": 1.0, "length": 10, "max_new_tokens": 6, **axes}
    case = make_case(subject=subject, workload=fed, meters=("flops",), **axes)
    really = counted(case, process="real", ways=ORDINARY)
    found = counted(case, process="shapes")
    assert found.notes["counted on"] == how, found.notes.get("because")
    assert found.values == really.values


def test_a_cascade_with_beams_is_counted_on_shapes_alone():
    stages = [
        {**entry("speech_to_text"), "name": "asr", "beam": 3},
        {**entry("marian", head="mt"), "name": "mt", "beam": 2},
        {**entry("speecht5", head="tts", vocoder="random"), "name": "tts"},
    ]
    subject = Spec(plugin="cascade", name="three", options={"stages": stages})
    case = make_case(subject=subject, workload=SOUND, meters=("flops",), max_new_tokens=5)
    really = counted(case, process="real", ways=ORDINARY)
    found = counted(case, process="shapes")
    assert found.notes["counted on"] == ON_SHAPES, found.notes.get("because")
    assert found.values == really.values
