import numpy as np
import pytest
import tiny_ctc
from conftest import make_case

pytest.importorskip("sherpa_onnx", reason="needs sherpa-onnx")
pytest.importorskip("onnx", reason="needs onnx to build models")

from speechmeter.core.errors import InputError
from speechmeter.core.types import Batch, Spec
from speechmeter.subjects.sherpa_onnx import SherpaOnnxSubject

SOUND = np.random.default_rng(0).standard_normal((2, 32_000), dtype=np.float32)
SIZES = {"vocab_size": str(tiny_ctc.VOCABULARY), "subsampling_factor": str(tiny_ctc.FACTOR)}
KINDS = {
    "zipformer2_ctc": {},
    "wenet_ctc": SIZES,
    **{
        kind: {**SIZES, "normalize_type": "per_feature"}
        for kind in ("EncDecCTCModelBPE", "EncDecCTCModel", "EncDecHybridRNNTCTCBPEModel")
    },
}


def case_of(folder, options=None, **axes):
    spec = Spec(plugin="sherpa-onnx", name="m", source=str(folder), options=options or {})
    return make_case(subject=spec, **axes)


def texts(prepared, batch):
    state = batch
    for stage in prepared.stages:
        state = stage.fn(state)
    return state


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_one_text_an_item_and_padding_changes_none(tmp_path, kind):
    tiny_ctc.save(tmp_path, kind, **KINDS[kind])
    case = case_of(tmp_path, {"weights": "random"})
    SherpaOnnxSubject().check(case)
    prepared = SherpaOnnxSubject().prepare(case, "cpu")
    both = texts(prepared, Batch(data=SOUND, items=2, lengths=(32_000, 16_000)))
    alone = texts(prepared, Batch(data=SOUND[1:, :16_000], items=1, lengths=(16_000,)))
    assert len(both) == 2
    assert both[1:] == alone
    assert all(both)
    assert kind in prepared.notes[0]
    assert any(note.startswith("random weights") for note in prepared.notes)


@pytest.mark.parametrize(
    ("kind", "metadata", "words"),
    [
        ("", {}, "has the unknown model_type ''"),
        ("paraformer", {}, "known are: zipformer2_ctc"),
        ("wenet_ctc", {}, "no vocab_size"),
    ],
)
def test_a_model_that_would_end_the_process_is_refused_first(tmp_path, kind, metadata, words):
    tiny_ctc.save(tmp_path, kind, **metadata)
    with pytest.raises(InputError, match=words):
        SherpaOnnxSubject().prepare(case_of(tmp_path), "cpu")


def test_what_a_directory_lacks_is_named(tmp_path):
    subject = SherpaOnnxSubject()
    with pytest.raises(InputError, match="there is no directory 'absent'"):
        subject.check(case_of("absent"))
    with pytest.raises(InputError, match=r"contains no \.onnx file"):
        subject.check(case_of(tmp_path))
    (tmp_path / "model.onnx").touch()
    with pytest.raises(InputError, match=r"contains no tokens\.txt"):
        subject.check(case_of(tmp_path))
    (tmp_path / "tokens.txt").touch()
    subject.check(case_of(tmp_path))
    (tmp_path / "model.int8.onnx").touch()
    with pytest.raises(InputError, match=r"contains 2 models; use `model: model\.int8\.onnx` or"):
        subject.check(case_of(tmp_path))
    subject.check(case_of(tmp_path, {"model": "model.onnx"}))
    with pytest.raises(InputError, match="contains no model 'other'"):
        subject.check(case_of(tmp_path, {"model": "other"}))


def test_what_it_cannot_do_is_unavailable():
    subject = SherpaOnnxSubject()
    assert subject.unavailable(case_of("d")) is None
    for axes in ({"device": "cuda"}, {"dtype": "float16"}, {"compile": True}):
        assert subject.unavailable(case_of("d", **axes))


def test_the_two_graphs_of_moonshine_are_one_model(tmp_path, monkeypatch):
    import onnx
    import sherpa_onnx
    from onnx import helper, numpy_helper

    for file, numbers in (("encoder_model.onnx", 3), ("decoder_model_merged.onnx", 5)):
        weight = numpy_helper.from_array(np.ones(numbers, np.float32), "weight")
        graph = helper.make_graph([helper.make_node("Relu", ["weight"], ["y"])], "g", [], [], [weight])
        onnx.save(helper.make_model(graph), tmp_path / file)
    (tmp_path / "tokens.txt").write_text("YQ== 0\n")
    asked = {}
    monkeypatch.setattr(sherpa_onnx.OfflineRecognizer, "from_moonshine_v2", lambda **given: asked.update(given))
    SherpaOnnxSubject().check(case_of(tmp_path))
    prepared = SherpaOnnxSubject().prepare(case_of(tmp_path, threads=1), "cpu")
    assert {name: (tmp_path / file).samefile(asked[name]) for name, file in (
        ("encoder", "encoder_model.onnx"), ("decoder", "decoder_model_merged.onnx"), ("tokens", "tokens.txt"),
    )} == {"encoder": True, "decoder": True, "tokens": True}  # fmt: skip
    assert set(prepared.modules) == {"encoder", "decoder"}
    assert "moonshine" in prepared.notes[0]
    with pytest.raises(InputError, match="contains no model 'absent'"):
        SherpaOnnxSubject().check(case_of(tmp_path, {"model": "absent"}))
