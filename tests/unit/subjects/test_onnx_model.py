import numpy as np
import pytest
from conftest import make_case

pytest.importorskip("onnxruntime", reason="needs onnxruntime")
onnx = pytest.importorskip("onnx", reason="needs onnx to build graphs")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from speechmeter.core.errors import InputError  # noqa: E402
from speechmeter.core.types import Batch, Spec  # noqa: E402
from speechmeter.subjects.mel import array_log_mel, frames_in  # noqa: E402
from speechmeter.subjects.onnx_model import OnnxSubject  # noqa: E402
from speechmeter.subjects.zoo.chain import LogMel  # noqa: E402

FLOAT, HALF, INT64, INT32 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.INT32
NOISE = np.random.default_rng(0).standard_normal((2, 16_000), dtype=np.float32)


def graph(path, *inputs):
    """A graph that doubles its first input and takes the others without using them."""
    values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    name, kind, shape = inputs[0]
    two = numpy_helper.from_array(np.asarray(2, dtype=helper.tensor_dtype_to_np_dtype(kind)), "two")
    made = helper.make_graph(
        [helper.make_node("Mul", [name, "two"], ["out"])],
        "doubles",
        values,
        [helper.make_tensor_value_info("out", kind, shape)],
        [two],
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def case_of(path, options=None, **axes):
    return make_case(subject=Spec(plugin="onnx", name="m", source=str(path), options=options or {}), **axes)


def stages_of(path, options=None, **axes):
    case = case_of(path, options, **axes)
    OnnxSubject().check(case)
    return OnnxSubject().prepare(case, "cpu").stages


def batch_of(data=NOISE):
    return Batch(data=data, items=len(data), lengths=(data.shape[1], *[8_000] * (len(data) - 1)))


def output(stages, batch):
    state = batch
    for stage in stages:
        state = stage.fn(state)
    return state


def test_a_waveform_reaches_the_graph_as_it_is(tmp_path):
    stages = stages_of(graph(tmp_path / "m.onnx", ("wave", FLOAT, ["batch", "samples"])))
    assert [stage.name for stage in stages] == ["copy", "model"]
    np.testing.assert_array_equal(output(stages, batch_of()), 2 * NOISE)


def test_a_waveform_may_have_a_channel_and_be_half(tmp_path):
    path = graph(tmp_path / "m.onnx", ("wave", HALF, ["batch", 1, "samples"]))
    made = output(stages_of(path, dtype="float16"), batch_of())
    np.testing.assert_array_equal(made, 2 * NOISE.astype(np.float16)[:, None])


@pytest.mark.parametrize(
    ("shape", "layout"), [(["b", "t", 80], None), (["b", 80, "t"], None), (["b", "x", "y"], "bands-frames")]
)
def test_log_mel_is_laid_out_as_the_graph_wants_it(tmp_path, shape, layout):
    torch = pytest.importorskip("torch", reason="compares with the front-end in torch")
    stages = stages_of(graph(tmp_path / "m.onnx", ("mel", FLOAT, shape)), {"layout": layout} if layout else {})
    assert [stage.name for stage in stages] == ["features", "model"]
    truth = 2 * LogMel()(torch.from_numpy(NOISE)).numpy()
    truth = truth if layout or shape[1] == 80 else truth.swapaxes(1, 2)
    np.testing.assert_allclose(output(stages, batch_of()), truth, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("kind", "dtype"), [(INT64, np.int64), (INT32, np.int32)])
@pytest.mark.parametrize(("sound", "true"), [(["b", "t"], [16_000, 8_000]), (["b", "t", 80], [101, 51])])
def test_lengths_are_in_what_the_graph_counts(tmp_path, kind, dtype, sound, true):
    feed = stages_of(graph(tmp_path / "m.onnx", ("x", FLOAT, sound), ("n", kind, ["b"])))[0].fn
    lengths = feed(batch_of())["n"]
    assert lengths.tolist() == true
    assert lengths.dtype == dtype


@pytest.mark.parametrize("samples", [1, 159, 160, 16_000])
def test_the_number_of_frames_is_what_the_front_end_makes(samples):
    assert array_log_mel(1)(np.zeros((1, samples), np.float32)).shape == (1, frames_in(samples), 80)


@pytest.mark.parametrize(
    ("inputs", "options", "words"),
    [
        (
            [("mel", FLOAT, ["b", "t", 64])],
            {},
            "'mel' float (b, t, 64) does not fit the built-in log-mel features with 80 bands",
        ),
        (
            [("mel", FLOAT, ["b", "x", "y"])],
            {},
            "(b, x, y) does not show which dimension is bands; use `layout",
        ),
        ([("x", FLOAT, ["b", "t"])], {"layout": "frames-bands"}, "`layout` does not apply; remove `layout`"),
        ([("x", FLOAT, ["b", "t"]), ("y", FLOAT, ["b", "t"])], {}, "has 2 inputs that could take sound"),
        ([("x", FLOAT, ["b", "t"]), ("rate", INT64, [])], {}, "inputs other than sound and lengths: 'rate' int64 ()"),
        ([("ids", INT64, ["b", "t"])], {}, "has 0 inputs that could take sound: 'ids' int64 (b, t)"),
        (
            [("x", HALF, ["b", "t"])],
            {},
            "the input of the graph is float16, but `dtype` is float32; use `dtype: float16`",
        ),
    ],
)
def test_a_graph_that_cannot_be_fed_is_refused_in_one_line(tmp_path, inputs, options, words):
    with pytest.raises(InputError) as refused:
        stages_of(graph(tmp_path / "m.onnx", *inputs), options)
    assert words in str(refused.value)


@pytest.mark.parametrize("shape", [[1, "t"], ["b", 8_000]])
def test_a_fixed_dimension_that_does_not_fit_is_named(tmp_path, shape):
    feed = stages_of(graph(tmp_path / "m.onnx", ("wave", FLOAT, shape)))[0].fn
    with pytest.raises(InputError, match=r"'wave' float \(.*\) is fixed and cannot take 2 × 16000; export"):
        feed(batch_of())


@pytest.mark.parametrize("frames", [100, 101, 300])
@pytest.mark.parametrize("bands_first", [False, True])
def test_features_are_as_many_frames_as_the_graph_takes(tmp_path, frames, bands_first):
    shape = ["b", 80, frames] if bands_first else ["b", frames, 80]
    stages = stages_of(graph(tmp_path / "m.onnx", ("mel", FLOAT, shape), ("n", INT64, ["b"])))
    made = output(stages, batch_of())
    made = made.swapaxes(1, 2) if bands_first else made
    followed_by_silence = np.pad(NOISE, ((0, 0), (0, 64_000)))
    np.testing.assert_allclose(made, 2 * array_log_mel(1)(followed_by_silence)[:, :frames], rtol=1e-5, atol=1e-5)
    assert stages[0].fn(batch_of())["n"].tolist() == [min(101, frames), 51]


def test_sound_that_is_longer_than_a_graph_takes_is_not_cut(tmp_path):
    stages = stages_of(graph(tmp_path / "m.onnx", ("mel", FLOAT, ["b", 99, 80])))
    with pytest.raises(InputError, match=r"the graph takes 99 frames \(0.99 s\), and the sound has 101; use shorter"):
        output(stages, batch_of())


def test_a_file_that_is_no_graph_is_refused(tmp_path):
    for text in (b"", b"not a graph at all", b"\x08\x07"):
        (tmp_path / "m.onnx").write_bytes(text)
        with pytest.raises(InputError, match=r"m\.onnx"):
            stages_of(tmp_path / "m.onnx")


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        OnnxSubject().check(case_of(tmp_path / "absent.onnx"))


def test_what_onnxruntime_cannot_do_here_is_unavailable():
    subject = OnnxSubject()
    assert subject.unavailable(case_of("m.onnx")) is None
    assert "torch.compile" in subject.unavailable(case_of("m.onnx", compile=True))
    assert "no MadeUpProvider" in subject.unavailable(case_of("m.onnx", {"providers": ["MadeUpProvider"]}))
    cpu = {"providers": ["CPUExecutionProvider"]}
    assert subject.unavailable(case_of("m.onnx", cpu)) is None
    assert "does not run on the requested device" in subject.unavailable(case_of("m.onnx", cpu, device="cuda"))


def test_the_weights_that_are_kept_hold_no_data(tmp_path):
    path = graph(tmp_path / "m.onnx", ("wave", FLOAT, ["b", "t"]))
    case = case_of(path)
    (kept,) = OnnxSubject().prepare(case, "cpu").modules["model"].graph.initializer
    assert (kept.name, list(kept.dims), kept.raw_data) == ("two", [], b"")
