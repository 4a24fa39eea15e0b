"""Running on shapes alone: what stays real, what is invented, and what is refused."""

import pickle
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor  # noqa: E402

from speechmeter.core import metrics  # noqa: E402
from speechmeter.core.errors import NeedsValuesError  # noqa: E402
from speechmeter.core.protocols import Prepared  # noqa: E402
from speechmeter.core.types import Batch, Measurement, Stage  # noqa: E402
from speechmeter.engine.measure import measure  # noqa: E402
from speechmeter.meters.flops.meter import (  # noqa: E402
    SHAPES_THEN_REAL,
    FlopsMeter,
    is_cheap,
)
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


READS = {
    "item": lambda token: token.item(),
    "if": lambda token: bool(token == 3),
    "range": lambda token: range(token),
    "tolist": lambda token: token.tolist(),
    "numpy": lambda token: token.numpy(),
    "asarray": lambda token: np.asarray(token),
    "dlpack": lambda token: np.from_dlpack(token),
    "equal": lambda token: torch.equal(token, torch.tensor(3)),
    "nonzero": lambda token: token.nonzero(),
    "where": lambda token: torch.where(token > 0),
    "masked_select": lambda token: torch.arange(8).masked_select(token > 0),
    "mask as an index": lambda token: torch.arange(8)[torch.arange(8) < token],
    "unique": lambda token: (token + torch.arange(3)).unique(),
    "unique_consecutive": lambda token: torch.unique_consecutive(token + torch.arange(3)),
    "bincount": lambda token: torch.bincount(token + torch.arange(3)),
    "repeat_interleave": lambda token: torch.arange(3).repeat_interleave(token + torch.arange(3)),
    "tensor_split": lambda token: torch.arange(9).tensor_split(token + torch.arange(2)),
    "tensor_split of torch": lambda token: torch.tensor_split(torch.arange(9), token + torch.arange(2)),
    "packed lengths": lambda token: nn.utils.rnn.pack_padded_sequence(torch.zeros(4, 1, 2), token.reshape(1) + 2),
    "a function of Python": lambda token: token.apply_(lambda value: value),
    "memory": lambda token: token.data_ptr(),
    "pickle": lambda token: pickle.dumps(token),
    "sparse": lambda token: torch.sparse_coo_tensor(token.reshape(1, 1), [1.0], (9,)),
    "written into real memory": lambda token: torch.zeros(3, dtype=torch.long).index_fill_(0, token, 2).tolist(),
    "written into a view": lambda token: _through_a_view(token).tolist(),
}


def _through_a_view(token):
    memory = torch.zeros(4, dtype=torch.long)
    memory[1:2].copy_(token)
    return memory


@pytest.mark.parametrize("read", READS)
def test_reading_a_computed_value_is_refused(read):
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building = False
        token = layer(torch.zeros(1, 4)).argmax()
        with pytest.raises(NeedsValuesError, match="computed value"):
            READS[read](token)


def test_a_loop_that_an_invented_zero_ends_is_refused_too():
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building = False
        with pytest.raises(NeedsValuesError):
            range(layer(torch.zeros(1, 4)).argmax())


def test_text_may_be_written_from_computed_values_unless_something_is_computed_afterwards():
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building = False
        found = layer(torch.zeros(3, 4))
        mode.writing = True
        assert found.argmax(-1).tolist() == [0, 0, 0]
        mode.writing = False
        with pytest.raises(NeedsValuesError):
            layer(torch.zeros(3, 4))


def test_real_integers_may_be_read_in_every_way():
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building = False
        for read in READS.values():
            read(torch.tensor(2))
        assert layer(torch.zeros(1, 4)).shape == (1, 4)


@pytest.mark.parametrize("inside", [False, True])
def test_a_pinned_loop_may_be_steered_by_computed_values_but_not_a_module_inside_it(inside):
    class Routed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, data):
            best = self.layer(data).argmax()
            return self.layer(data + 1) if inside and bool(best == 0) else self.layer(data)

    with shapes_only() as mode:
        model = Routed()
        mode.building, mode.pinned = False, True

        def loop():
            while not bool(model(torch.zeros(1, 4)).argmax() == 0):
                pass
            return model(torch.zeros(1, 4))

        if inside:
            with pytest.raises(NeedsValuesError):
                loop()
        else:
            loop()


def test_a_pinned_loop_may_pick_places_by_computed_values_but_compute_nothing_with_them():
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building, mode.pinned = False, True
        tokens = layer(torch.zeros(3, 4)).argmax(-1)
        torch.where(tokens == 0)
        with pytest.raises(NeedsValuesError, match="nonzero"):
            layer(torch.zeros(1, 4))


def test_a_float_that_holds_no_data_is_never_read():
    with shapes_only() as mode:
        scores = nn.Linear(4, 4)(torch.zeros(1, 4))
        mode.building, mode.pinned = False, True
        with pytest.raises(NeedsValuesError):
            scores.sum().item()


def test_memory_that_a_computed_value_was_written_into_is_not_real():
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building = False
        found = torch.zeros(3, 4)
        found[1:] = layer(torch.zeros(2, 4))
        with pytest.raises(NeedsValuesError):
            layer(found[found.sum(-1) > 0])


def test_a_computed_value_in_memory_that_numpy_reads_is_refused():
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building = False
        buffer = np.zeros((1, 4), np.float32)
        with pytest.raises(NeedsValuesError, match="NumPy"):
            torch.from_numpy(buffer).copy_(layer(torch.zeros(1, 4)))


@pytest.mark.parametrize("show", [str, repr, "{}".format])
def test_a_computed_value_that_is_written_as_text_is_read(show):
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building = False
        with pytest.raises(NeedsValuesError, match="__repr__"):
            show(layer(torch.zeros(2, 4)))


@pytest.mark.parametrize("building", [False, True])
def test_a_random_number_that_decides_is_refused(building):
    with shapes_only() as mode:
        layer = nn.Linear(4, 4)
        mode.building = building
        with pytest.raises(NeedsValuesError, match="computed value"):
            for _ in range(int(torch.randint(1, 4, (1,)))):
                layer(torch.zeros(1, 4))


def test_masks_of_zeros_and_ones_in_the_shape_of_an_activation_are_real():
    with shapes_only() as mode:
        hidden = nn.Linear(4, 4)
        mode.building = False
        state = hidden(torch.zeros(2, 3, 4))
        mask = state.new_ones((2, 3)).masked_fill(torch.tensor([[False, False, True]]), 0)
        assert hidden(state[mask.bool()]).shape == (4, 4)


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
    assert "the count on shapes alone generated 8 tokens instead of the pinned 3" in found.notes["because"]


def test_a_subject_that_depends_on_what_it_hears_is_never_counted_on_shapes():
    found = flops_of(Decoder(data_dependent=True))
    assert found.values == (3 * 2 * 8 * 8,)
    assert "depends on the content of the audio" in found.notes["because"]


class Careful(Decoder):
    """Takes one step where a value cannot be read, and three where it can."""

    def __init__(self, read):
        super().__init__()
        self._read = read

    def prepare(self, case, device):
        layer = nn.Linear(8, 8, bias=False)

        def call(batch):
            steps = 1
            with suppress(Exception):
                self._read(layer(torch.zeros(1, 8)))
                steps = 3
            for _ in range(steps):
                layer(torch.zeros(1, 8))

        return Prepared(stages=(Stage(name="model", fn=call),), modules={"layer": layer})


@pytest.mark.parametrize(
    "read",
    [
        lambda scores: scores.sum().item(),
        lambda scores: scores.argmax().tolist(),
        lambda scores: scores[scores > 0],
        lambda scores: scores.data_ptr(),
        lambda scores: pickle.dumps(scores),
    ],
    ids=["item", "tolist", "mask", "memory", "pickle"],
)
def test_a_model_that_catches_the_refusal_and_goes_on_is_counted_on_a_real_run(read):
    subject = Careful(read)
    unchecked = (replace(SHAPES_THEN_REAL[0], check_next=lambda found: False), *SHAPES_THEN_REAL[1:])
    case = make_case(meters=("flops",))
    outcome = measure(case, subject, subject, [FlopsMeter()], process="shapes", ways=unchecked)
    (found,) = [m for m in outcome.measurements if (m.metric, m.scope) == ("flops.v1", "total")]
    assert found.values == (4 * 2 * 8 * 8,)
    assert found.notes["counted on"] == "a real run"


def test_weights_may_be_drawn_until_they_lie_within_bounds():
    with shapes_only() as mode:
        weight = nn.init.trunc_normal_(nn.Linear(4, 4).weight)  # reads whether any is outside
        assert isinstance(weight, FakeTensor)
        mode.building = False
        with pytest.raises(NeedsValuesError):
            nn.init.trunc_normal_(weight)


class Pretender(Decoder):
    """Does more on a real run than on shapes alone, by something that nobody watches; or fails there."""

    def __init__(self, fails=False):
        super().__init__()
        self._fails = fails

    def prepare(self, case, device):
        layer = nn.Linear(8, 8, bias=False)

        def call(batch):
            if self._fails and active() is None:
                raise ValueError("no real run here")
            for _ in range(1 if active() is not None else 2):
                layer(torch.zeros(1, 8))

        return Prepared(stages=(Stage(name="model", fn=call),), modules={"layer": layer})


def test_a_count_on_shapes_that_a_real_run_does_not_confirm_is_not_given():
    found = flops_of(Pretender())
    assert found.values == (2 * 2 * 8 * 8,)
    assert found.notes["counted on"] == "a real run"
    assert "differs (128 instead of 256 FLOP)" in found.notes["because"]


def test_a_count_on_shapes_says_that_a_real_run_confirmed_it():
    class Plain(Decoder):
        def prepare(self, case, device):
            layer = nn.Linear(8, 8)
            return Prepared(
                stages=(Stage(name="model", fn=lambda batch: layer(torch.zeros(1, 8))),), modules={"layer": layer}
            )

    found = flops_of(Plain())
    assert found.notes["counted on"] == "shapes alone"
    assert found.notes["checked"] == "a real run gave the same count"


def test_a_count_on_shapes_stays_where_the_real_run_fails():
    subject = Pretender(fails=True)
    outcome = measure(make_case(meters=("flops",)), subject, subject, [FlopsMeter()], process="shapes")
    assert outcome.status == "ok"
    assert any("no real run here" in warning for warning in outcome.warnings)


@pytest.mark.parametrize(("flops", "moved", "cheap"), [(1e9, 1e8, True), (1e12, 1e8, False), (1e9, 1e11, False)])
def test_only_what_takes_seconds_is_counted_on_a_real_run_too(flops, moved, cheap):
    found = [Measurement.of(metrics.FLOPS, [flops]), Measurement.of(metrics.BYTES_MOVED, [moved])]
    assert is_cheap(found) is cheap


class Keeps:
    """A model that keeps its answers, by input; `kept` layers are run for an input that it has not seen."""

    def __init__(self, keeps):
        self._keeps = keeps

    def prepare(self, case, device):
        first, last, answers = nn.Linear(8, 8), nn.Linear(8, 8), {}

        def call(batch):
            key = batch.data.tobytes()
            if key not in answers or not self._keeps:
                answers[key] = first(torch.from_numpy(batch.data))
            return last(answers[key])

        return Prepared(stages=(Stage(name="model", fn=call),), modules={"first": first, "last": last})

    def batches(self, case):
        yield Batch(data=np.arange(8, dtype=np.float32)[None], items=1)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_model_that_keeps_answers_says_what_a_new_input_takes(keeps):
    found = flops_of(Keeps(keeps))
    one = 2 * 8 * 8
    assert found.values == ((1 if keeps else 2) * one,)
    assert found.notes.get("another input") == (
        "the FLOPs depend on the content: another input of the same size took 256 FLOP" if keeps else None
    )
