"""Running on shapes alone: what stays real, what is invented, and what is refused."""

import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor  # noqa: E402

from speechmeter.core.errors import NeedsValuesError  # noqa: E402
from speechmeter.core.protocols import Prepared  # noqa: E402
from speechmeter.core.types import Batch, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.flops.meter import FlopsMeter  # noqa: E402
from speechmeter.meters.flops.shapes_only import active, shapes_only  # noqa: E402


def test_a_model_of_any_size_takes_no_memory():
    with shapes_only():
        layer = nn.Linear(10**6, 10**6)  # 4 TB
        assert isinstance(layer.weight, FakeTensor)
        assert layer(torch.zeros(2, 10**6)).shape == (2, 10**6)


def test_sound_and_integers_stay_real():
    with shapes_only() as mode:
        mode.building = False
        sound = torch.arange(8.0)
        assert sound.sum().item() == 28.0
        assert (torch.arange(4) + 1).tolist() == [1, 2, 3, 4]
        assert not isinstance(torch.hann_window(16), FakeTensor)


def test_ties_survive_a_change_of_dtype():
    with shapes_only():
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        model[1].weight = model[0].weight
        model.to(torch.float16)
        assert model[1].weight is model[0].weight
        assert model[0].weight.dtype is torch.float16


def test_a_decision_by_a_computed_value_is_refused_unless_the_length_is_pinned():
    with shapes_only() as mode:
        scores = nn.Linear(4, 4)(torch.zeros(1, 4))
        mode.building = False
        token = scores.argmax()
        with pytest.raises(NeedsValuesError, match="computed value"):
            bool(token == 3)
        mode.pinned = True
        assert not bool(token == 3)
        with pytest.raises(NeedsValuesError):
            scores.sum().item()


def test_a_real_mask_selects_as_many_as_it_says():
    with shapes_only():
        weight = nn.Linear(3, 5).weight
        mask = torch.tensor([True, False, True, True, False])
        assert weight[mask].shape == (3, 3)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("packed", [False, True])
def test_recurrent_networks_give_the_shapes_of_a_real_run(kind, packed):
    def run():
        model = kind(6, 5, num_layers=2, bidirectional=True, batch_first=not packed)
        inputs = torch.zeros(2, 7, 6)
        if packed:
            inputs = nn.utils.rnn.pack_padded_sequence(inputs.transpose(0, 1), [7, 4])
        with torch.inference_mode():
            output, states = model(inputs)
        data = output.data if packed else output
        return data.shape, [s.shape for s in (states if isinstance(states, tuple) else (states,))]

    real = run()
    with shapes_only():
        assert run() == real


class Decoder:
    """Products until the arg max is `stop`: how many depends on values."""

    def __init__(self, data_dependent=False, **stage):
        self._data_dependent = data_dependent
        self._stage = stage

    def prepare(self, case, device):
        layer = nn.Linear(8, 8, bias=False)
        with torch.no_grad():
            layer.weight.copy_(torch.roll(torch.eye(8), 1, 0))

        def decode(batch):
            state, steps = torch.eye(8)[:1], 0
            while steps < 8:
                state, steps = layer(state), steps + 1
                if state.argmax() == 3:
                    break
            return steps

        return Prepared(
            stages=(Stage(name="model", fn=decode, **self._stage),),
            modules={"layer": layer},
            data_dependent=self._data_dependent,
        )

    def batches(self, case):
        yield Batch(data=None, items=1)


def flops_of(subject):
    meter = FlopsMeter()
    outcome = measure(make_case(meters=("flops",)), subject, subject, [meter], process="shapes")
    assert outcome.status == "ok", outcome.reason
    assert active() is None
    return next(m for m in outcome.measurements if m.metric == "flops.v1" and m.scope == "total")


def test_a_model_that_decides_by_values_is_counted_on_a_real_run_and_says_so():
    found = flops_of(Decoder())
    assert found.values == (3 * 2 * 8 * 8,)  # three steps to reach the stop
    assert found.notes["counted on"] == "a real run"
    assert "computed value" in found.notes["because"]


def test_a_pinned_decoder_that_makes_another_number_of_tokens_on_shapes_is_counted_on_a_real_run():
    found = flops_of(Decoder(pinned_tokens=3, tokens=lambda steps: steps))
    assert found.values == (3 * 2 * 8 * 8,)
    assert "8 tokens were made on shapes alone where 3 are pinned" in found.notes["because"]


def test_a_subject_that_depends_on_what_it_hears_is_never_counted_on_shapes():
    found = flops_of(Decoder(data_dependent=True))
    assert found.values == (3 * 2 * 8 * 8,)
    assert "what it hears" in found.notes["because"]


def test_weights_may_be_drawn_until_they_lie_within_bounds():
    with shapes_only() as mode:
        weight = nn.init.trunc_normal_(nn.Linear(4, 4).weight)  # reads whether any is outside
        assert isinstance(weight, FakeTensor)
        mode.building = False
        with pytest.raises(NeedsValuesError):
            nn.init.trunc_normal_(weight)
