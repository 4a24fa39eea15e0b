"""The walk over weights: what is shared, packed, wrapped, or without data."""

import pytest

torch = pytest.importorskip("torch", reason="walks over torch modules")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from speechmeter.meters.weights import held_bytes, once, uncountable, weights_of  # noqa: E402


def walk(module):
    return weights_of({"model": module})


def elements(weights):
    return sum(weight.elements for weight in weights)


def by_dtype(weights):
    sizes = {}
    for part in (part for weight in once(weights) for part in weight.parts):
        sizes[part.dtype] = sizes.get(part.dtype, 0) + part.size_bytes
    return sizes


def quantise(model, *kinds, dtype=torch.qint8):
    return torch.ao.quantization.quantize_dynamic(model, set(kinds), dtype=dtype)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(100, 8), torch.nn.Linear(8, 100, bias=False)
        self.head.weight = self.embedding.weight


def on_meta():
    with torch.device("meta"):
        return Tied()


def on_fake():
    with FakeTensorMode():
        return Tied()


@pytest.mark.parametrize("build", [Tied, on_meta, on_fake])
def test_a_tie_is_seen_without_data(build):
    found = walk(build())
    assert (elements(once(found)), elements(found)) == (800, 1600)
    assert held_bytes(found) == 3200


@pytest.mark.parametrize("build", [on_meta, on_fake])
def test_equal_tensors_without_data_are_not_taken_for_one(build):
    found = walk(torch.nn.ModuleList([build(), build()]))
    assert elements(once(found)) == 1600


def test_two_parameters_on_one_storage_count_once():
    first = torch.nn.Linear(8, 4, bias=False)
    second = torch.nn.Linear(4, 8, bias=False)
    second.weight = torch.nn.Parameter(first.weight.detach().t())
    found = walk(torch.nn.ModuleList([first, second]))
    assert (elements(once(found)), elements(found)) == (32, 64)


def test_slices_of_one_storage_count_each_and_hold_all_of_it():
    flat = torch.zeros(100)
    parts = torch.nn.ParameterList([flat[:10], flat[10:30]])
    found = walk(parts)
    assert elements(once(found)) == 30
    assert held_bytes(found) == 400


def test_weight_norm_counts_its_originals_alone():
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(4, 6, 3))
    assert elements(once(walk(layer))) == 6 + 6 * 4 * 3 + 6


@pytest.mark.parametrize("scripted", [False, True])
def test_a_dynamically_quantised_linear_keeps_its_elements(scripted):
    model = quantise(torch.nn.Sequential(torch.nn.Linear(64, 32)), torch.nn.Linear)
    found = walk(torch.jit.script(model) if scripted else model)
    assert elements(once(found)) == 64 * 32 + 32
    assert by_dtype(found) == {"int8": 64 * 32, "float32": 32 * 4}
    assert not any(weight.trainable for weight in found)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_a_dynamically_quantised_recurrent_layer_keeps_its_elements(kind):
    model = torch.nn.Sequential(kind(16, 8, num_layers=2, bidirectional=True))
    matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    biases = sum(p.numel() for p in model.parameters() if p.dim() == 1)
    found = walk(quantise(model, kind))
    assert elements(once(found)) == matrices + biases
    assert by_dtype(found) == {"int8": matrices, "float32": 4 * biases}


def test_half_precision_packing_is_two_bytes_an_element():
    model = quantise(torch.nn.Sequential(torch.nn.Linear(64, 32)), torch.nn.Linear, dtype=torch.float16)
    assert by_dtype(walk(model)) == {"float16": 2 * 64 * 32, "float32": 32 * 4}


def test_a_packed_layer_under_two_names_is_a_tie():
    layer = quantise(torch.nn.Sequential(torch.nn.Linear(8, 4, bias=False)), torch.nn.Linear)[0]
    found = walk(torch.nn.Sequential(layer, layer))
    assert (elements(once(found)), elements(found)) == (32, 64)


class Scaled(torch.Tensor):
    """A tensor made of int8 codes and float32 scales, as quantisation libraries make them."""

    @staticmethod
    def __new__(cls, codes, scales):
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=torch.float32)

    def __init__(self, codes, scales):
        self.codes, self.scales = codes, scales

    def __tensor_flatten__(self):
        return ["codes", "scales"], None

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError(func)


def test_a_wrapped_weight_counts_its_elements_and_holds_its_pieces():
    wrapped = Scaled(torch.zeros(32, 64, dtype=torch.int8), torch.ones(32, 1))
    layer = torch.nn.Linear(64, 32, bias=False)
    layer.weight = torch.nn.Parameter(wrapped, requires_grad=False)
    found = walk(torch.nn.Sequential(layer, layer))
    assert (elements(once(found)), elements(found)) == (64 * 32, 2 * 64 * 32)
    assert by_dtype(found) == {"int8": 64 * 32, "float32": 32 * 4}
    assert held_bytes(found) == 64 * 32 + 32 * 4


def test_a_sparse_weight_is_counted_although_it_has_no_storage():
    holder = torch.nn.Module()
    holder.register_buffer("mask", torch.eye(4).to_sparse())
    (mask,) = walk(holder)
    assert (mask.elements, mask.buffer) == (16, True)


def test_an_object_that_is_no_model_is_refused():
    assert "list" in uncountable({"voice": []})
    assert uncountable({"model": torch.nn.ReLU()}) is None
