"""The counter: modules, phases, kinds of operators, and the fused operators of inference."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from speechmeter.meters.flops.count import count  # noqa: E402


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Sequential(nn.Linear(16, 16), nn.GELU())

    def forward(self, data):
        return self.second(self.first(data))


def inference(model, *inputs):
    def call():
        with torch.inference_mode():
            model(*inputs)

    return call


def test_modules_sum_to_the_whole_and_hold_their_children():
    model = Two().eval()
    counted = count(inference(model, torch.zeros(3, 8)), {"two": model})
    rows = {name: tally.flops for name, tally in counted.by_module().items()}
    assert rows["two.first"] == 2 * 3 * 8 * 16
    assert rows["two.second"] == rows["two.second.0"] == 2 * 3 * 16 * 16
    assert rows["two"] == rows["two.first"] + rows["two.second"] == counted.forward


def test_backward_belongs_to_the_module_whose_forward_made_it():
    model = Two()
    counted = count(lambda: model(torch.zeros(3, 8)).sum().backward(), {"two": model})
    rows = {name: tally.flops for name, tally in counted.by_module_backward().items()}
    assert rows["two.first"] == 2 * 3 * 8 * 16  # its input needs no gradient
    assert rows["two.second"] == 2 * (2 * 3 * 16 * 16)
    assert counted.backward == rows["two"]


def test_recomputed_work_is_told_apart():
    model = Two()
    data = torch.zeros(3, 8, requires_grad=True)
    counted = count(lambda: checkpoint(model, data, use_reentrant=False).sum().backward(), {"two": model})
    assert counted.recompute == counted.forward > 0
    assert counted.backward == counted.recompute + 2 * counted.forward


def test_element_operations_and_bytes_are_counted_apart():
    data = torch.zeros(10, 10)
    counted = count(lambda: torch.relu(data) + data)
    assert counted.forward == 0
    assert counted.element_ops == 200
    assert counted.bytes == (100 + 100) * 4 + (100 + 100 + 100) * 4


def test_an_operator_nobody_knows_is_listed():
    @torch.library.custom_op("speechmeter_test::mystery", mutates_args=())
    def mystery(data: torch.Tensor) -> torch.Tensor:
        return data.clone()

    assert count(lambda: mystery(torch.zeros(3))).unknown() == {"speechmeter_test::mystery": 1}


def test_the_fused_encoder_layer_of_inference_is_counted():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    counted = count(
        inference(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), torch.zeros(2, 10, 32))
    )
    each = 2 * 2 * 10 * (4 * 32 * 32 + 2 * 32 * 64) + 2 * 2 * (2 * 10 * 10 * 32)
    assert counted.forward == 2 * each
    assert counted.unknown() == {}


def test_fused_self_attention_of_inference_is_counted():
    layer = nn.MultiheadAttention(32, 4, batch_first=True).eval()
    data = torch.zeros(2, 10, 32)

    def call():
        with torch.inference_mode():
            layer(data, data, data, need_weights=False)

    assert count(call).forward == 2 * 2 * 10 * 4 * 32 * 32 + 2 * 2 * (2 * 10 * 10 * 32)


def test_packed_sequences_count_their_true_steps():
    packed = nn.utils.rnn.pack_padded_sequence(torch.zeros(9, 2, 6), [9, 4])
    counted = count(inference(nn.LSTM(6, 5).eval(), packed))
    assert counted.forward == 2 * 13 * (4 * 5 * 6 + 4 * 5 * 5)


def test_inverse_transforms_count_by_the_length_of_the_signal():
    spectrum = torch.fft.rfft(torch.zeros(3, 400))
    counted = count(lambda: torch.fft.irfft(spectrum, n=400))
    assert counted.forward == pytest.approx(3 * 2.5 * 400 * 8.6439, rel=1e-4)


def test_quantised_recurrent_networks_keep_their_arithmetic():
    plain = nn.Sequential(nn.LSTM(6, 5)).eval()
    quantised = torch.ao.quantization.quantize_dynamic(plain, {nn.LSTM}, dtype=torch.qint8)
    counted = count(inference(quantised, torch.zeros(9, 2, 6)))
    assert counted.forward == count(inference(plain, torch.zeros(9, 2, 6))).forward == 2 * 18 * 20 * 11
