"""A random CTC model with the metadata that sherpa-onnx asks for: one convolution over log-mel, and its tokens."""

from pathlib import Path

BANDS, VOCABULARY, FACTOR = 80, 28, 4
PARAMETERS = VOCABULARY * BANDS * FACTOR + VOCABULARY + 1
"""Weight, bias, and the constant that lengths are divided by."""


def save(folder: Path, kind: str, **metadata: str) -> None:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = 0.1 * np.random.default_rng(0).standard_normal((VOCABULARY, BANDS, FACTOR), dtype=np.float32)
    of_nemo = kind.startswith("EncDec")  # its models take (batch, bands, frames), and blank is their last token
    turned = [] if of_nemo else [helper.make_node("Transpose", ["x"], ["bands"], perm=[0, 2, 1])]
    nodes = [
        *turned,
        helper.make_node(
            "Conv", ["x" if of_nemo else "bands", "weight", "bias"], ["scores"], kernel_shape=[FACTOR], strides=[FACTOR]
        ),
        helper.make_node("Transpose", ["scores"], ["frames"], perm=[0, 2, 1]),
        helper.make_node("LogSoftmax", ["frames"], ["log_probs"], axis=-1),
        helper.make_node("Div", ["x_lens", "factor"], ["log_probs_len"]),
    ]
    graph = helper.make_graph(
        nodes,
        "ctc",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", BANDS, "T"] if of_nemo else ["N", "T", BANDS]),
            helper.make_tensor_value_info("x_lens", TensorProto.INT64, ["N"]),
        ],
        [
            helper.make_tensor_value_info("log_probs", TensorProto.FLOAT, ["N", "S", VOCABULARY]),
            helper.make_tensor_value_info("log_probs_len", TensorProto.INT64, ["N"]),
        ],
        [
            numpy_helper.from_array(weight, "weight"),
            numpy_helper.from_array(np.zeros(VOCABULARY, np.float32), "bias"),
            numpy_helper.from_array(np.asarray(FACTOR, np.int64), "factor"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {"model_type": kind, **metadata})
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    letters = [*map(chr, range(ord("a"), ord("a") + VOCABULARY - 1))]
    tokens = [*letters, "<blk>"] if of_nemo else ["<blk>", *letters]
    (folder / "tokens.txt").write_text("".join(f"{token} {index}\n" for index, token in enumerate(tokens)))
