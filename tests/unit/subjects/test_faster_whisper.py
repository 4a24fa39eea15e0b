import numpy as np
import pytest
import tiny_whisper
from conftest import make_case

pytest.importorskip("faster_whisper", reason="needs faster-whisper")
ctranslate2 = pytest.importorskip("ctranslate2", reason="needs CTranslate2")
pytest.importorskip("transformers", reason="needs transformers to make a model")

from speechmeter.core.errors import InputError  # noqa: E402
from speechmeter.core.types import Batch, Spec  # noqa: E402
from speechmeter.subjects.faster_whisper import FasterWhisperSubject  # noqa: E402

SOUND = np.random.default_rng(0).standard_normal((2, 31 * 16_000), dtype=np.float32)


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whisper")
    tiny_whisper.convert(folder / "saved", folder / "converted")
    return folder / "converted"


def case_of(path, options=None, **axes):
    spec = Spec(plugin="faster-whisper", name="m", source=str(path), options=options or {})
    return make_case(subject=spec, **{"beam": 1, "max_new_tokens": None, "quantize": "none", **axes})


def model_stage(prepared):
    return next(stage for stage in prepared.stages if stage.name == "model")


def tokens_of(prepared, made):
    return model_stage(prepared).tokens(made[prepared.stages.index(model_stage(prepared))])


def outputs(prepared, batch):
    states = [batch]
    for stage in prepared.stages:
        states.append(stage.fn(states[-1]))
    return states[1:]


@pytest.mark.parametrize(("beam", "tokens"), [(1, 1), (1, 7), (3, 7), (1, 224)])
def test_random_weights_make_exactly_the_tokens_that_are_pinned(converted, beam, tokens):
    case = case_of(converted, {"weights": "random"}, beam=beam, max_new_tokens=tokens)
    prepared = FasterWhisperSubject().prepare(case, "cpu")
    batch = Batch(data=SOUND[:, :16_000], items=2, lengths=(16_000, 8_000))
    assert tokens_of(prepared, outputs(prepared, batch)) == 2 * tokens
    assert model_stage(prepared).pinned_tokens == tokens
    assert not prepared.data_dependent
    assert f"output length fixed at {tokens} tokens" in prepared.notes


def test_long_sound_is_cut_into_windows_and_gives_one_text_an_item(converted):
    prepared = FasterWhisperSubject().prepare(case_of(converted, {"weights": "random"}, seconds=31.0), "cpu")
    made = outputs(prepared, Batch(data=SOUND, items=2, lengths=(SOUND.shape[1], 16_000)))
    assert [len(ids) for ids in made[1].rows] == [32] * 3
    assert len(made[2]) == 2
    assert model_stage(prepared).pinned_tokens == 64


def test_trained_weights_decide_their_length_themselves(converted):
    prepared = FasterWhisperSubject().prepare(case_of(converted, max_new_tokens=5), "cpu")
    assert prepared.data_dependent
    assert model_stage(prepared).pinned_tokens is None
    assert not any("random weights" in note for note in prepared.notes)
    assert tokens_of(prepared, outputs(prepared, Batch(data=SOUND[:1], items=1, lengths=(16_000,)))) <= 5


def test_quantised_weights_are_int8(converted):
    prepared = FasterWhisperSubject().prepare(case_of(converted, quantize="int8-dynamic"), "cpu")
    assert "int8_float32" in prepared.notes[0]


def test_what_is_missing_from_a_directory_is_named(tmp_path):
    subject = FasterWhisperSubject()
    with pytest.raises(InputError, match="there is no directory 'absent'; convert a model: ct2-transformers-converter"):
        subject.check(case_of("absent"))
    for name in ("model.bin", "config.json", "tokenizer.json"):
        with pytest.raises(InputError, match=f"contains no {name}"):
            subject.check(case_of(tmp_path))
        (tmp_path / name).write_text("{}")
    subject.check(case_of(tmp_path))
    with pytest.raises(InputError, match="faster-whisper cannot load"):
        subject.prepare(case_of(tmp_path), "cpu")


def test_what_the_engine_cannot_do_is_unavailable(converted):
    subject = FasterWhisperSubject()
    assert subject.unavailable(case_of(converted)) is None
    assert subject.unavailable(case_of(converted, quantize="int8-dynamic")) is None
    reason = subject.unavailable(case_of(converted, dtype="float16")) or ""
    assert ("no float16 on this cpu" in reason) is ("float16" not in ctranslate2.get_supported_compute_types("cpu"))
    assert "torch.compile" in subject.unavailable(case_of(converted, compile=True))
    assert "at most 224" in subject.unavailable(case_of(converted, max_new_tokens=225))
