"""The chains against the interfaces' own methods, with the same random weights."""

import shutil
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from speechbrain_models import MODELS, speechbrain_case

from speechmeter.core.types import Batch

torch = pytest.importorskip("torch", reason="needs torch")
if find_spec("speechbrain") is None:  # importing it needs torchaudio or its stand-in
    pytest.skip("needs speechbrain", allow_module_level=True)

from speechmeter.subjects import torch_runtime as runtime  # noqa: E402
from speechmeter.subjects.speechbrain.loading import load  # noqa: E402
from speechmeter.subjects.speechbrain.stages import prepare_chain  # noqa: E402

WAVES = np.random.default_rng(0).standard_normal((3, 8000)).astype(np.float32) / 10
LENGTHS = torch.tensor([1.0, 0.75, 0.5])
BATCH = Batch(data=WAVES, items=3, lengths=(8000, 6000, 4000), audio_s=1.125, padded_s=1.5)


def through(prepared, batch=BATCH):
    outputs = [batch]
    for stage in prepared.stages:
        outputs.append(stage.fn(outputs[-1]))
    return outputs[1:]


def interface(case):
    """The interface itself, with the weights that `prepare` gives to the same case."""
    runtime.configure(case)
    model = load(case, "cpu").model
    model.tokenizer = SimpleNamespace(decode_ids=list)
    return model


def both(kind, **options):
    case = speechbrain_case(MODELS / kind, **options)
    prepared = prepare_chain(case, "cpu")
    return prepared, through(prepared), interface(case)


def names(prepared):
    return [stage.name for stage in prepared.stages]


def test_classifier():
    prepared, outputs, model = both("EncoderClassifier")
    model.hparams.label_encoder = SimpleNamespace(decode_torch=list)
    scores, _, index, _ = model.classify_batch(torch.from_numpy(WAVES), LENGTHS)
    torch.testing.assert_close(outputs[-2], scores)
    assert outputs[-1] == index.tolist()
    assert names(prepared) == ["copy", "features", "model", "decode"]


def test_speaker_recognition():
    _, outputs, model = both("SpeakerRecognition")
    waves = torch.from_numpy(WAVES)
    _, same = model.verify_batch(waves, waves.roll(1, dims=0), LENGTHS, LENGTHS.roll(1))
    assert torch.equal(outputs[-1], same)


def test_voice_activity():
    _, outputs, model = both("VAD")
    torch.testing.assert_close(outputs[-2], model.get_speech_prob_chunk(torch.from_numpy(WAVES), LENGTHS))
    assert len(outputs[-1]) == BATCH.items


def test_enhancement():
    _, outputs, model = both("SpectralMaskEnhancement")
    torch.testing.assert_close(outputs[-1], model.enhance_batch(torch.from_numpy(WAVES), lengths=LENGTHS))


def test_separation_hears_its_own_sample_rate():
    prepared, outputs, model = both("SepformerSeparation")
    heard = outputs[0]
    assert (heard.data.shape, heard.lengths) == ((3, 4000), (4000, 3000, 2000))
    torch.testing.assert_close(outputs[-1], model.separate_batch(torch.from_numpy(heard.data)))
    assert [stage.name for stage in prepared.stages if not stage.clocked] == ["resample"]


def test_snr():
    _, outputs, model = both("SNREstimator")
    heard = torch.from_numpy(outputs[0].data)
    torch.testing.assert_close(outputs[-1], model(heard, torch.stack([heard / 2] * 2, dim=-1)))


def test_ctc_recogniser():
    _, outputs, model = both("EncoderASR")
    assert outputs[-1] == model.transcribe_batch(torch.from_numpy(WAVES), LENGTHS)[1]


def test_attention_recogniser_runs_to_its_pinned_length():
    prepared, outputs, model = both("EncoderDecoderASR")
    assert outputs[-1] == model.transcribe_batch(torch.from_numpy(WAVES), LENGTHS)[1]
    frames = outputs[1][0].shape[1]
    assert prepared.stages[-2].tokens(outputs[-2]) == 3 * (
        int(0.2 * frames) - 1
    )  # the searcher takes the last token for the end
    assert "output length fixed at max_decode_ratio: 0.2 × the encoder's frames" in prepared.notes
    assert names(prepared) == ["copy", "model", "search", "decode"]
    assert not prepared.data_dependent


def test_overrides_reach_the_file():
    prepared, outputs, _ = both("EncoderDecoderASR", overrides={"max_decode_ratio": 0.4})
    frames = outputs[1][0].shape[1]
    assert prepared.stages[-2].tokens(outputs[-2]) == 3 * (int(0.4 * frames) - 1)


def test_understanding_builds_its_recogniser_from_the_directory_beside():
    prepared, outputs, model = both("EndToEndSLU")
    assert outputs[-1] == model.decode_batch(torch.from_numpy(WAVES), LENGTHS)[1]
    frames = outputs[1][0].shape[1]
    assert prepared.stages[-2].tokens(outputs[-2]) == 3 * int(0.1 * frames)
    assert set(prepared.modules) == {"slu_enc", "beam_searcher", "asr_encoder"}


def test_checkpoints_beside_the_file_are_loaded_and_the_rest_is_named(tmp_path):
    directory = tmp_path / "model"
    shutil.copytree(MODELS / "EncoderClassifier", directory)
    case = speechbrain_case(directory)
    embedding = prepare_chain(case, "cpu").modules["embedding_model"]
    weights = {name: torch.full_like(value, 0.25) for name, value in embedding.state_dict().items()}
    torch.save(weights, directory / "embedding_model.ckpt")
    labels = "".join(f"'class{k}' => {k}\n" for k in range(7))
    (directory / "label_encoder.txt").write_text(f"{labels}{'=' * 16}\n'starting_index' => 0\n")
    prepared = prepare_chain(case, "cpu")
    assert all(torch.all(p == 0.25) for p in prepared.modules["embedding_model"].parameters())
    assert (
        "random weights: calls cost the same as with trained ones, but the output has no meaning: in "
        "classifier" in prepared.notes
    )
    assert all(label.startswith("class") for label in through(prepared)[-1])
    torch.save(prepared.modules["classifier"].state_dict(), directory / "classifier.ckpt")
    assert not [note for note in prepare_chain(case, "cpu").notes if note.startswith("random weights")]
    again = prepare_chain(speechbrain_case(directory, weights="random"), "cpu")
    assert "random weights: calls cost the same as with trained ones, but the output has no meaning" in again.notes


def test_with_weights_of_its_own_a_search_may_stop_where_it_wants(tmp_path):
    directory = tmp_path / "model"
    shutil.copytree(MODELS / "EncoderDecoderASR", directory)
    text = (directory / "hyperparams.yaml").read_text()
    loadables = "  loadables: {encoder: !ref <encoder>, decoder: !ref <decoder>}\n"
    (directory / "hyperparams.yaml").write_text(text + loadables)
    case = speechbrain_case(directory)
    for name, module in prepare_chain(case, "cpu").modules.items():
        torch.save(module.state_dict(), directory / f"{name}.ckpt")
    prepared = prepare_chain(case, "cpu")
    assert prepared.data_dependent
    assert not [note for note in prepared.notes if "pinned" in note or "random weights" in note]


def test_other_libraries_are_not_told_that_torchaudio_is_here():
    if find_spec("torchaudio") is not None:
        pytest.skip("torchaudio is installed")
    prepared = prepare_chain(speechbrain_case(MODELS / "EncoderASR"), "cpu")
    assert "torchaudio is not installed: an empty module replaces it for the import" in prepared.notes
    assert find_spec("torchaudio") is None
