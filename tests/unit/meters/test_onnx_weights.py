"""Initialisers of ONNX models made by hand, in graphs, in subgraphs and of packed types."""

import re

import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx to build models")
np = pytest.importorskip("numpy")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from speechmeter.meters.parameters import count  # noqa: E402
from speechmeter.meters.weights import uncountable, weights_of  # noqa: E402


def tensor(name, shape, dtype=np.float32):
    return numpy_helper.from_array(np.zeros(shape, dtype=dtype), name)


def graph(*tensors, nodes=()):
    return helper.make_graph(list(nodes), "graph", [], [], initializer=list(tensors))


def branch(*graphs):
    names = ("then_branch", "else_branch")
    return helper.make_node("If", ["condition"], ["out"], **dict(zip(names, graphs, strict=True)))


def found_in(model):
    return weights_of({"model": model})


def figures(**models):
    return {(m.metric, m.scope): m.values for m in count(models)}


def test_initialisers_are_counted_by_shape_and_type():
    model = helper.make_model(graph(tensor("w", (16, 8)), tensor("b", (16,), np.int8), tensor("scalar", ())))
    found = figures(encoder=model)
    assert found["parameters.v1", "total"] == (16 * 8 + 16 + 1,)
    assert found["parameter_bytes.v1", "dtype:float32"] == (4 * (16 * 8 + 1),)
    assert found["parameter_bytes.v1", "dtype:int8"] == (16,)
    assert found["parameters_trainable.v1", "total"] == (0,)


def test_graphs_inside_nodes_are_walked_to_the_bottom():
    inner = graph(tensor("deep", (3, 3)))
    middle = graph(tensor("then", (2, 2)), nodes=[branch(inner, graph())])
    model = helper.make_model(graph(tensor("top", (1,)), nodes=[branch(middle, graph(tensor("else", (5,))))]))
    assert sorted(found.name for found in found_in(model)) == ["model.deep", "model.else", "model.then", "model.top"]
    assert figures(model=model)["parameters.v1", "total"] == (9 + 4 + 1 + 5,)


def test_four_bit_weights_take_half_a_byte():
    packed = helper.make_tensor("w", TensorProto.INT4, (3, 5), [0] * 15)
    (found,) = found_in(helper.make_model(graph(packed)))
    assert (found.elements, found.parts[0].dtype, found.size_bytes) == (15, "int4", 8)


def test_data_in_another_file_is_not_read():
    outside = tensor("w", (1000, 1000))
    outside.ClearField("raw_data")
    outside.data_location = TensorProto.EXTERNAL
    assert figures(model=helper.make_model(graph(outside)))["parameter_bytes.v1", "total"] == (4_000_000,)


def test_several_models_have_a_row_each():
    one, two = helper.make_model(graph(tensor("w", (4,)))), helper.make_model(graph(tensor("w", (6,))))
    found = figures(encoder=one, decoder=two)
    assert found["parameters.v1", "module:decoder"] == (6,)
    assert found["parameters.v1", "total"] == (10,)


def test_text_is_no_weight_and_an_unknown_type_has_a_reason():
    words = helper.make_tensor("words", TensorProto.STRING, (2,), [b"a", b"b"])
    odd = TensorProto(name="odd", data_type=99, dims=[4])
    assert found_in(helper.make_model(graph(words))) == []
    assert "unknown ONNX type 99" in uncountable({"model": helper.make_model(graph(words, odd))})


def true_bits(name):
    """By the type's own name: the first number in it."""
    digits = re.search(r"\d+", name)
    return int(digits.group()) if digits else {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8}[name]


def test_every_known_element_type_has_its_true_size():
    checked = 0
    for name, number in TensorProto.DataType.items():
        model = helper.make_model(graph(TensorProto(name="w", data_type=number, dims=[8])))
        if not uncountable({"model": model}) and name != "STRING":
            (found,) = found_in(model)
            assert found.size_bytes == true_bits(name), name  # eight elements: as many bytes as one has bits
            checked += 1
    assert checked >= 22


def test_only_a_model_is_a_model():
    assert uncountable({"model": helper.make_model(graph())}) is None
    assert "GraphProto, neither a torch module nor an ONNX model" in uncountable({"model": graph()})
    assert "object, neither" in uncountable({"model": object()})
