"""What a model is fed: features past its front-end as if it were called with them, text as ids of its vocabulary."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import make_case
from tiny_models import SMALL

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from speechmeter.core.errors import SubjectError  # noqa: E402
from speechmeter.core.stages import run_chain  # noqa: E402
from speechmeter.core.types import Batch, Spec  # noqa: E402
from speechmeter.subjects.transformers import TransformersSubject  # noqa: E402
from speechmeter.subjects.transformers.inputs import Ids, read_text  # noqa: E402
from speechmeter.workloads.features import FeatureWorkload  # noqa: E402

FED = Spec(plugin="features", name="features", options={"count": 2, "frames": [40, 90], "bands": 80})
AXES = {"batch": 2, "max_new_tokens": 5, "boundary": "model"}


def case_of(kind, workload=FED, **options):
    subject = Spec(plugin="transformers", name=kind, source=kind, options={"config": SMALL[kind], **options})
    return make_case(subject=subject, workload=workload, **AXES)


def fed(kind, **options):
    """(what the chain makes of synthetic features, its model, the features, which of their frames are true)."""
    case = case_of(kind, **options)
    prepared = TransformersSubject().prepare(case, "cpu")
    (batch,) = FeatureWorkload().batches(case)
    assert batch.lengths[0] != batch.lengths[1]
    assert "the input is features, so the model's own feature extraction does not run" in prepared.notes
    mask = torch.zeros(batch.data.shape[:2], dtype=torch.long)
    for row, length in enumerate(batch.lengths):
        mask[row, :length] = 1
    outputs = dict(zip([stage.name for stage in prepared.stages], run_chain(prepared.stages, batch), strict=True))
    return outputs, prepared.modules["model"], torch.from_numpy(batch.data), mask


def test_a_recogniser_writes_what_it_writes_when_it_is_called_with_the_features():
    outputs, model, data, mask = fed("speech_to_text")
    direct = model.generate(
        input_features=data, attention_mask=mask, do_sample=False, num_beams=1, min_new_tokens=5, max_new_tokens=5
    )
    assert outputs["decode"] == direct[:, 1:].tolist()


@torch.inference_mode()
def test_scores_are_those_of_the_model_called_with_the_features():
    outputs, model, data, mask = fed("parakeet_ctc")
    assert torch.equal(outputs["model"], model(input_features=data, attention_mask=mask).logits)


@torch.inference_mode()
def test_frames_are_paired_where_the_model_hears_pairs():
    outputs, model, data, mask = fed("wav2vec2-bert", head="ctc")
    pairs = data.shape[1] // 2
    paired = torch.cat([data[:, 0 : 2 * pairs : 2], data[:, 1 : 2 * pairs : 2]], dim=-1)
    made = model(input_features=paired, attention_mask=mask[:, 1 : 2 * pairs : 2]).logits
    assert torch.equal(outputs["model"], made)


def test_what_the_model_cannot_take_is_said_when_it_was_not_known_before():
    hears = TransformersSubject().prepare(case_of("speech_to_text"), "cpu").stages[0].fn
    with pytest.raises(SubjectError, match="takes features of 80 bands, but its input has 7"):
        hears(Batch(data=np.zeros((1, 9, 7), np.float32), items=1, lengths=(9,)))
    with pytest.raises(SubjectError, match="takes sound, but its input is text"):
        hears(Batch(data=("a line",), items=1, lengths=(2,)))


CONFIG = SimpleNamespace(vocab_size=1000, pad_token_id=0, eos_token_id=2, bos_token_id=1)


def text(*items):
    return Batch(data=items, items=len(items))


def test_a_word_always_has_the_same_id_and_never_a_special_one():
    ids = Ids(CONFIG, 1000)
    first, second, third = ids.of("the boat the")
    assert first == third != second
    assert not {0, 1, 2} & set(ids.of(" ".join(map(str, range(5000)))))


def test_a_small_vocabulary_is_one_of_letters():
    assert len(Ids(CONFIG, 80).of("two words")) == 9
    assert len(Ids(CONFIG, 1000).of("two words")) == 2


def test_ids_of_a_larger_vocabulary_are_taken_modulo_ours():
    made = Ids(CONFIG, 10).of((0, 7, 70_000))
    assert made[0] == made[1]  # 7 plain ids
    assert all(3 <= number < 10 for number in made)


def test_items_are_padded_and_end_as_the_model_expects():
    made = read_text(CONFIG, None, end=True)(text((5, 6, 7), (8,)))
    assert made["input_ids"].shape == (2, 4)
    assert made["input_ids"][1].tolist()[1:] == [2, 0, 0]
    assert made["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]


def test_an_empty_item_still_has_an_id():
    assert read_text(CONFIG, None, end=False)(text(""))["input_ids"].shape == (1, 1)


def test_a_tokenizer_reads_lines_but_not_ids():
    def tokenizer(lines, **options):
        return {"input_ids": torch.tensor([[9, 9]] * len(lines)), "attention_mask": torch.ones(len(lines), 2)}

    features = read_text(CONFIG, tokenizer, end=True)
    assert features(text("a line"))["input_ids"].tolist() == [[9, 9]]
    assert features(text((4, 5, 6)))["input_ids"].shape == (1, 4)


def test_a_model_that_reads_says_so_when_it_is_fed_sound():
    with pytest.raises(SubjectError, match="this model takes text"):
        read_text(CONFIG, None, end=False)(Batch(data=torch.zeros(1, 100).numpy(), items=1))
