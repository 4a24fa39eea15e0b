"""What the zoo's models do with long, padded and random input, against plainer computations."""

import itertools

import pytest

pytest.importorskip("torch", reason="needs torch")

import torch

from speechmeter.subjects.zoo.conformer import BLANK, ConformerCtc, RelativeAttention, Scores, distances_of, greedy
from speechmeter.subjects.zoo.recurrent import AutoregressivePredictor
from speechmeter.subjects.zoo.transformer import MaskedAcoustic, sinusoids, split_heads


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
    with torch.inference_mode():
        yield


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_a_long_sound_is_encoded_in_pieces_that_do_not_see_each_other():
    model = MaskedAcoustic(layers=1, longest=50).eval()
    frames = torch.randn(2, 120, 80)
    found = model(frames)
    for start, end in ((0, 40), (40, 80), (80, 120)):
        close(found[:, start:end], model(frames[:, start:end]))


@pytest.mark.parametrize("longest", [100, 30])
def test_padding_changes_nothing_for_mockingjay(longest):
    model = MaskedAcoustic(layers=2, longest=longest).eval()
    frames = torch.randn(2, 60, 80)
    found = model(frames, torch.tensor([60, 25]))
    close(found[0], model(frames[:1])[0])
    close(found[1, :25], model(frames[1:, :25])[0])
    assert found.isfinite().all()  # a piece may hold nothing but padding


def test_padding_changes_nothing_for_apc():
    model = AutoregressivePredictor().eval()
    frames = torch.randn(3, 40, 80)
    states, foretold = model(frames, torch.tensor([17, 40, 5]))
    for item, length in enumerate((17, 40, 5)):
        alone, next_alone = model(frames[item : item + 1, :length])
        close(states[item, :length], alone[0])
        close(foretold[item, :length], next_alone[0])


def test_apc_adds_what_a_layer_was_given():
    model = AutoregressivePredictor().eval()
    for part in model.layers[1:]:
        for weights in part.parameters():
            weights.zero_()  # such a layer puts out zeros: what is left is what it was given
    frames = torch.randn(1, 10, 80)
    close(model(frames)[0], model.layers[0](frames)[0])


def test_sinusoids_by_their_definition():
    table = sinusoids(torch.arange(5), 6)
    angles = torch.tensor([[place / 10_000 ** (2 * (column // 2) / 6) for column in range(6)] for place in range(5)])
    close(table[:, 0::2], angles[:, 0::2].sin())
    close(table[:, 1::2], angles[:, 1::2].cos())


def test_relative_attention_scores_every_pair_by_its_distance():
    layer, states = RelativeAttention().eval(), torch.randn(1, 7, 256)
    query, key, value = (split_heads(part(states), 4) for part in (layer.query, layer.key, layer.value))
    scores = torch.empty(1, 4, 7, 7)
    for i, j in itertools.product(range(7), repeat=2):
        far = layer.distance(sinusoids(torch.tensor([i - j]), 256)).view(4, 64)
        content = (query[0, :, i] + layer.content_bias) * key[0, :, j]
        distance = (query[0, :, i] + layer.distance_bias) * far
        scores[0, :, i, j] = (content + distance).sum(dim=-1) / 8
    expected = layer.output((scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2))
    close(layer(states, distances_of(states), None), expected)


def test_the_conformer_attends_to_no_padding():
    model = ConformerCtc(vocabulary=10).eval()
    model.layers = model.layers[:1]
    for part in model.layers:
        part.convolution.depthwise.weight.zero_()  # it alone mixes padding in, as published
    frames = torch.randn(2, 203, 80)
    found = model(frames, torch.tensor([203, 103]))
    other = torch.cat([frames[:1], torch.cat([frames[1:, :107], torch.randn(1, 96, 80)], dim=1)])
    assert found.lengths.tolist() == [50, 26]
    close(found.logits[1, :26], model(other, torch.tensor([203, 103])).logits[1, :26])
    assert not torch.allclose(found.logits[1, :26], model(other).logits[1, :26], atol=1e-3)


@pytest.mark.parametrize(("lengths", "second"), [(None, [4, 4, 2]), ([5, 3], [4, 4])])
def test_greedy_decoding_merges_repeats_and_drops_blanks(lengths, second):
    best = torch.tensor([[3, 3, BLANK, 3, 1], [4, BLANK, 4, 4, 2]])
    logits = torch.nn.functional.one_hot(best, 5).float()
    scores = Scores(logits, None if lengths is None else torch.tensor(lengths))
    assert greedy(scores) == [[3, 3, 1], second]
