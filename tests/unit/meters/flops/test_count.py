"""The counter: modules, phases, kinds of operators, and the fused operators of inference."""

import _thread
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor

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
    rows = {name: tally.flops for name, tally in counted.by_module(backward=True).items()}
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


def test_a_reentrant_checkpoint_leaves_no_backward_work_without_a_module():
    model = Two()
    data = torch.zeros(3, 8, requires_grad=True)
    counted = count(lambda: checkpoint(model, data, use_reentrant=True).sum().backward(), {"two": model})
    rows = {name: tally.flops for name, tally in counted.by_module(backward=True).items()}
    assert counted.backward == counted.recompute + 2 * counted.forward
    assert rows["two"] == rows["two.first"] + rows["two.second"] == counted.backward
    assert rows["two.first"] == 3 * 2 * 3 * 8 * 16


class Beside(nn.Module):
    """Its first layer here, its second in another thread."""

    def __init__(self, pool=None):
        super().__init__()
        self.here, self.there = nn.Linear(8, 8), nn.Linear(8, 4)
        self.pool = pool

    def forward(self, data):
        if self.pool is not None:
            beside = self.pool.submit(self.there, data)
            return self.here(data).sum() + beside.result().sum()
        found = []
        thread = threading.Thread(target=lambda: found.append(self.there(data)))
        thread.start()
        out = self.here(data)
        thread.join()
        return out.sum() + found[0].sum()


@pytest.mark.parametrize("pool", [None, "new", "used"])
def test_work_in_other_threads_is_counted_for_its_module(pool):
    with ThreadPoolExecutor(1) as threads:
        model = Beside(threads if pool else None)
        data = torch.zeros(3, 8)
        if pool == "used":
            model(data)
        counted = count(inference(model, data), {"model": model})
    rows = {name: tally.flops for name, tally in counted.by_module().items()}
    assert rows == {"model": 2 * 3 * 8 * 12, "model.here": 2 * 3 * 8 * 8, "model.there": 2 * 3 * 8 * 4}
    assert counted.unseen == {}


def start_low(work):
    done = threading.Event()

    def run():
        work()
        done.set()

    _thread.start_new_thread(run, ())
    done.wait()


def call_back(work):
    """By a future that another thread finishes, and by one that is finished already."""
    future, done = Future(), threading.Event()
    future.add_done_callback(lambda _: (work(), done.set()))
    thread = threading.Thread(target=future.set_result, args=(None,))
    thread.start()
    done.wait()
    thread.join()
    future.add_done_callback(lambda _: work())


def call_back_in_a_pool(work):
    with ThreadPoolExecutor(1) as pool:
        go = threading.Event()
        future = pool.submit(go.wait)
        future.add_done_callback(lambda _: work())
        go.set()


@pytest.mark.parametrize(("ask", "times"), [(start_low, 1), (call_back, 2), (call_back_in_a_pool, 1)])
def test_low_threads_and_callbacks_are_counted_once_each(ask, times):
    layer = nn.Linear(8, 8)

    def work():
        with torch.no_grad():
            layer(torch.zeros(3, 8))

    assert count(lambda: ask(work)).forward == times * 2 * 3 * 8 * 8


def test_a_pool_is_left_as_it_was():
    with ThreadPoolExecutor(1) as pool:
        model = Beside(pool)
        counted = count(inference(model, torch.zeros(3, 8)))
        before = counted.forward
        model(torch.zeros(3, 8))
        assert counted.forward == before
        assert pool.submit(torch._C._len_torch_dispatch_stack).result() == 0


def test_backward_work_of_two_threads_belongs_to_the_module_around_both():
    model = Beside()
    counted = count(lambda: model(torch.zeros(3, 8)).backward(), {"model": model})
    assert counted.by_module(backward=True)["model"].flops == counted.backward == counted.forward


def test_operators_in_a_thread_that_cannot_be_followed_are_noticed():
    asked, answered = queue.Queue(), queue.Queue()
    weight = torch.zeros(8, 8)

    def worker():
        while (data := asked.get()) is not None:
            answered.put(data @ weight)

    thread = threading.Thread(target=worker, daemon=True)
    thread.start()

    def call():
        asked.put(torch.zeros(3, 8))
        return answered.get()

    try:
        assert count(call).unseen["aten::mm"] == 1
    finally:
        asked.put(None)
        thread.join()


def nested_items(layout):
    return torch.nested.nested_tensor([torch.zeros(5, 32), torch.zeros(9, 32)], layout=layout)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_a_layer_on_nested_tensors_counts_true_lengths_forward_and_backward(layout):
    layer = nn.Linear(32, 64)
    assert count(inference(layer, nested_items(layout))).forward == 2 * 14 * 32 * 64

    def step():
        out = layer(nested_items(layout).requires_grad_())
        (out.values() if layout is torch.jagged else torch.nested.to_padded_tensor(out, 0.0)).sum().backward()

    counted = count(step)
    assert (counted.forward, counted.backward) == (2 * 14 * 32 * 64, 2 * 2 * 14 * 32 * 64)
    assert counted.unknown() == {}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_an_encoder_that_leaves_padding_out_counts_true_lengths():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).eval()
    lengths = torch.tensor([10, 7, 4])

    def call():
        with torch.inference_mode():
            model(torch.zeros(3, 10, 32), src_key_padding_mask=torch.arange(10) >= lengths[:, None])

    counted = count(call, {"model": model})
    each = [2 * length * (4 * 32 * 32 + 2 * 32 * 64) + 4 * length**2 * 32 for length in lengths.tolist()]
    assert counted.forward == counted.by_module()["model"].flops == 2 * sum(each)
    assert counted.unknown() == {}


@pytest.mark.parametrize(
    ("call", "truth"),
    [
        (lambda z: z @ z, 8 * 6**3),
        (lambda z: torch.einsum("ij,kj->ik", z, z), 8 * 6**3),
        (lambda z: torch.bmm(z[None], z[None]), 8 * 6**3),
        (lambda z: torch.addmm(z, z, z), 8 * 6**3),
        (lambda z: z @ z[0], 8 * 6**2),
        (lambda z: torch.vdot(z[0], z[1]), 8 * 6),
        (lambda z: torch.fft.fft(z[:, :4], dim=1), 6 * 5 * 4 * 2),  # 5 N log2 N, in real operations by itself
    ],
)
def test_a_complex_multiply_accumulate_is_eight_real_operations(call, truth):
    assert count(lambda: call(torch.zeros(6, 6, dtype=torch.complex64))).forward == truth


def test_of_a_condition_the_branch_that_is_taken_is_counted():
    data = torch.zeros(4, 4)
    branches = (lambda one: one @ one @ one, lambda one: one @ one)
    assert count(lambda: torch.cond(torch.tensor(True), *branches, (data,))).forward == 2 * 2 * 4**3
    assert count(lambda: torch.cond(torch.tensor(False), *branches, (data,))).forward == 2 * 4**3
