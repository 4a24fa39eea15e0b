"""From text and foreign ids to the ids of a vocabulary."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from speechmeter.core.errors import SubjectError  # noqa: E402
from speechmeter.core.types import Batch  # noqa: E402
from speechmeter.subjects.transformers.inputs import Ids, read_text  # noqa: E402

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
