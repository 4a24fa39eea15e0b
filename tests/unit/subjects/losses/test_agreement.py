"""Agreement lets right losses through and catches planted faults."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from speechmeter.core.errors import DisagreementError  # noqa: E402
from speechmeter.subjects.losses import agreement  # noqa: E402
from speechmeter.subjects.losses.call import Joint, Pruned  # noqa: E402
from speechmeter.subjects.losses.known import (  # noqa: E402
    ALL,
    BY_NAME,
    FEW_FRAMES,
    INT64,
    NAN_PADDING,
    ORIGINAL_SIZE,
    PACKED,
    SINGLE,
    TRANSDUCER,
    Known,
)
from speechmeter.subjects.losses.trials import SMALL_STEP, TRIALS, WHOLE_STEP  # noqa: E402
from speechmeter.transducer import oracle_loss, packed_rnnt_loss, rnnt_loss, tdt_loss  # noqa: E402

QUICK = tuple(trial for trial in TRIALS if trial.name != ORIGINAL_SIZE)
OURS = BY_NAME["ours"]


def found(loss, known=OURS, dtype=torch.float32, trials=QUICK):
    return agreement.logit_deviations(known, loss, "cpu", dtype, 0, trials)


STEPS = SMALL_STEP, replace(WHOLE_STEP, sizes=((80, 20),))  # of a size whose oracle takes no seconds


def of_steps(loss, known, dtype=torch.float32):
    return agreement.step_deviations(known, loss, "cpu", dtype, 0, 5, STEPS)


def wrong(**options):
    given = {"blank": 0, "reduction": "none", **options}
    return lambda logits, labels: rnnt_loss(logits, labels.targets, labels.frames, labels.labels, **given)


@pytest.mark.parametrize(
    ("name", "trials"),
    [
        ("ours", QUICK),
        ("ours-torch", QUICK),
        pytest.param("ours", TRIALS, marks=pytest.mark.campaign),
    ],
)
def test_our_losses_agree_on_every_trial(name, trials):
    deviations = found(BY_NAME[name].implementation(), trials=trials)
    agreement.check(deviations)
    assert [d.skipped for d in deviations] == [None] * len(trials)
    assert max(d.loss for d in deviations) <= 1e-6
    assert max(d.gradient for d in deviations) <= 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_gradient_in_half_precision_may_be_rounded_to_it(dtype):
    agreement.check(found(OURS.implementation(), dtype=dtype))


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (wrong(blank=-1), "loss"),
        (wrong(fused_log_softmax=False), "loss"),
        (lambda logits, labels: wrong()(logits, labels) / labels.frames, "loss"),
        (lambda logits, labels: wrong()(2 * logits - logits.detach(), labels), "gradient is 1.0e"),
        (wrong(clamp=0.01), "gradient"),
    ],
    ids=["last id as blank", "logits taken for log-probs", "divided by frames", "gradient doubled", "clamped"],
)
@pytest.mark.parametrize("tolerance", [OURS.tolerance, SINGLE], ids=["close", "single"])
def test_a_loss_that_is_another_is_refused(loss, said, tolerance):
    known = Known(**{**vars(OURS), "tolerance": tolerance})
    with pytest.raises(
        DisagreementError,
        match=f"^its result differs from the float64 reference: the error of the {said}.* in the trial 'random'",
    ):
        agreement.check(found(loss, known))


def leaking(logits, labels):
    return wrong()(logits, labels) + 0 * logits.sum((1, 2, 3))


def test_a_nan_that_leaks_from_the_padding_is_caught():
    with pytest.raises(DisagreementError, match=f"gradient is NaN .* trial '{NAN_PADDING}'|loss is NaN"):
        agreement.check(found(leaking))


def test_what_a_loss_declares_is_skipped_with_its_words():
    known = Known(**{**vars(OURS), "integers": ("int32",), "cannot": {NAN_PADDING: "leaks"}})
    deviations = {d.name: d for d in found(leaking, known)}
    agreement.check(deviations.values())
    assert deviations[NAN_PADDING].skipped == "leaks"
    assert deviations[INT64].skipped == "takes only int32"
    rows = {(m.metric, m.scope): m for m in agreement.measurements(list(deviations.values()))}
    assert rows["loss_deviation.v1", f"label:{NAN_PADDING}"].unavailable == "leaks"
    assert rows["gradient_deviation.v1", f"label:{FEW_FRAMES}"].values[0] < 1e-5
    worst = max(d.gradient for d in deviations.values() if d.skipped is None)
    assert rows["gradient_deviation.v1", "total"].values == (worst,)


def test_a_packed_loss_that_gives_only_the_sum_is_judged_on_it():
    known = Known(**{**vars(OURS), "layout": PACKED, "in_place": True})

    def total(flat, labels):
        rows, start = [], 0
        for item, (frames, count) in enumerate(labels.sizes):
            part = flat[start : start + frames * (count + 1)].view(1, frames, count + 1, -1)
            start += frames * (count + 1)
            lengths = (labels.frames[item : item + 1], labels.labels[item : item + 1])
            rows.append(oracle_loss(part, labels.targets[item : item + 1, :count], *lengths, blank=0, reduction="sum"))
        return torch.stack(rows).sum()

    agreement.check(found(total, known))
    with pytest.raises(DisagreementError):
        agreement.check(found(lambda flat, labels: total(flat, labels) / 2, known))


def test_a_pruned_loss_is_judged_with_all_states_and_shown_with_few():
    known = BY_NAME["ours-pruned"]
    everything, few = of_steps(known.implementation(), known)
    assert everything.judged
    assert everything.loss <= 1e-6
    assert not few.judged
    assert 1e-3 < few.loss < 0.2


def test_a_pruned_loss_in_half_precision_is_shown_and_not_judged():
    known = BY_NAME["ours-pruned"]
    deviations = of_steps(known.implementation(), known, torch.bfloat16)
    agreement.check(deviations)
    rows = {(m.metric, m.scope): m for m in agreement.measurements(deviations)}
    everything, few = (d.loss for d in deviations)
    assert everything < 0.01 < few
    assert rows["loss_deviation.v1", "total"].values == (few,)
    assert rows["loss_deviation.v1", "total"].notes == {"judged": False}


def test_the_joiner_before_a_loss_that_is_judged_uses_no_tf32_and_the_setting_is_put_back():
    known, seen, setting = BY_NAME["ours-pruned"], [], torch.backends.cuda.matmul
    ours, before = known.implementation(), setting.allow_tf32

    def loss(*given):
        seen.append(setting.allow_tf32)
        return ours.loss(*given)

    setting.allow_tf32 = True
    try:
        spied = Pruned(ranges=ours.ranges, join=ours.join, loss=loss)
        of_steps(spied, known)
        assert seen == [False, True]  # only the first is judged
        assert setting.allow_tf32
    finally:
        setting.allow_tf32 = before


def test_a_pruned_loss_with_a_fault_is_refused():
    known, ours = BY_NAME["ours-pruned"], BY_NAME["ours-pruned"].implementation()
    faulty = Pruned(ranges=ours.ranges, join=ours.join, loss=lambda *given: 1.01 * ours.loss(*given))
    with pytest.raises(DisagreementError, match="in the trial 'small step, all states'"):
        agreement.check(of_steps(faulty, known))


class OfNumba:
    """The call of `RNNTLossNumba`: options first, tensors then. Its own defaults are others than we ask for."""

    def __init__(self, blank=0, reduction="mean", fastemit_lambda=0.1, clamp=1.0):
        self.options = {"blank": blank, "reduction": reduction, "fastemit": fastemit_lambda, "clamp": clamp}

    def __call__(self, acts, labels, act_lens, label_lens):
        assert acts.is_contiguous()
        return rnnt_loss(acts, labels, act_lens, label_lens, **self.options)


def of_torchaudio(logits, targets, logit_lengths, target_lengths, blank=-1, clamp=-1, reduction="mean"):
    return rnnt_loss(logits, targets, logit_lengths, target_lengths, blank=blank, clamp=clamp, reduction=reduction)


def of_warp_transducer(acts, labels, act_lens, label_lens, blank=0, reduction="mean"):
    return rnnt_loss(acts, labels, act_lens, label_lens, blank=blank, reduction=reduction)


def of_warp_rnnt(log_probs, labels, frames_lengths, labels_lengths, reduction="mean", blank=-1, gather=False):
    lengths = (frames_lengths, labels_lengths)
    return rnnt_loss(log_probs, labels, *lengths, blank=blank, reduction=reduction, fused_log_softmax=False)


def of_k2(logits, symbols, termination_symbol, boundary, reduction="mean"):
    assert not boundary[:, :2].any()
    frames, labels = boundary[:, 3].contiguous(), boundary[:, 2].contiguous()
    return rnnt_loss(logits, symbols, frames, labels, blank=termination_symbol, reduction=reduction)


def of_nemo_triton(blank_id, logits, targets, src_lengths, tgt_lengths, fastemit_lambda=0.0):
    return rnnt_loss(logits, targets, src_lengths, tgt_lengths, blank=blank_id, reduction="none")


class OfNemoTdt:
    """The call of `TDTLossNumba`: durations behind the ids."""

    def __init__(self, blank, durations=None, reduction="mean", fastemit_lambda=0.1, clamp=1.0, sigma=0.1, omega=0.1):
        assert (fastemit_lambda, sigma, omega) == (0.0, 0.0, 0.0) and clamp < 0
        self.options = {"durations": durations, "blank": blank, "reduction": reduction}

    def __call__(self, acts, labels, act_lens, label_lens):
        count = len(self.options["durations"])
        return tdt_loss(acts[..., :-count], acts[..., -count:], labels, act_lens, label_lens, **self.options)


def of_returnn(logits, labels, frame_lens, label_lens, *, blank, max_frames=None):
    assert max_frames == frame_lens.max()
    return packed_rnnt_loss(logits, labels, frame_lens, label_lens, blank=blank, reduction="none")


def of_optimized_transducer(
    logits, targets, logit_lengths, target_lengths, blank, reduction="mean", from_log_softmax=True
):
    assert not from_log_softmax
    return packed_rnnt_loss(logits, targets, logit_lengths, target_lengths, blank=blank, reduction=reduction)


class OfSpeechBrain:
    """Its loss is that of an utterance / its frames, and its gradient is not divided."""

    def __init__(self, blank=-1, reduction="mean"):
        self.options = {"blank": blank, "reduction": reduction}

    def __call__(self, logits, labels, T, U):
        whole = rnnt_loss(logits, labels, T, U, **self.options)
        return whole - whole.detach() * (1 - 1 / T)


LIBRARIES = {
    "torchaudio": ("torchaudio.functional", {"rnnt_loss": of_torchaudio}),
    "warprnnt-numba": ("warprnnt_numba", {"RNNTLossNumba": OfNumba}),
    "nemo": ("nemo.collections.asr.parts.numba.rnnt_loss", {"RNNTLossNumba": OfNumba}),
    "nemo-triton": (
        "nemo.collections.asr.parts.rnnt_triton.rnnt_loss_triton",
        {"rnnt_loss_triton": of_nemo_triton},
    ),
    "nemo-tdt": ("nemo.collections.asr.parts.numba.rnnt_loss", {"TDTLossNumba": OfNemoTdt}),
    "returnn": ("returnn.torch.util.rnnt", {"rnnt_loss": of_returnn}),
    "k2": ("k2", {"rnnt_loss": of_k2}),
    "fast-rnnt": ("fast_rnnt", {"rnnt_loss": of_k2}),
    "optimized-transducer": ("optimized_transducer", {"transducer_loss": of_optimized_transducer}),
    "warp-transducer": ("warprnnt_pytorch", {"rnnt_loss": of_warp_transducer}),
    "warp-rnnt": ("warp_rnnt", {"rnnt_loss": of_warp_rnnt}),
    "speechbrain": ("speechbrain.integrations.numba.transducer_loss", {"TransducerLoss": OfSpeechBrain}),
}
"""What stands in for a library that is absent: its module, and a right loss that is called and answers as its own."""
OTHERS = [k for k in ALL if not k.pruned and not k.name.startswith("ours")]


@pytest.mark.parametrize("known", OTHERS, ids=lambda known: known.name)
def test_every_other_loss_agrees_installed_or_with_a_library_in_its_place(known, monkeypatch):
    if known.missing() is not None or "cpu" not in known.devices:
        home, functions = LIBRARIES[known.name]
        names = home.split(".")
        for count in range(1, len(names) + 1):
            monkeypatch.setitem(sys.modules, ".".join(names[:count]), SimpleNamespace())
        monkeypatch.setitem(sys.modules, home, SimpleNamespace(**functions))
    agreement.check(found(known.implementation(), known, trials=QUICK if known.kind == TRANSDUCER else QUICK[:2]))


def test_a_loss_with_its_joiner_is_judged_by_all_its_gradients():
    known = BY_NAME["ours-joint"]
    found = of_steps(known.implementation(), known)
    assert [deviation.name for deviation in found] == ["small step, all states", "whole step"]
    agreement.check(found)


@pytest.mark.parametrize("share", [0.999, 1.001])
def test_a_joiner_with_a_fault_in_its_weight_is_refused(share):
    known = BY_NAME["ours-joint"]
    right = known.implementation()

    def wrong(sides, labels, ranges, states):
        encoder, predictor, weight, bias = sides
        return right.loss((encoder, predictor, weight * share, bias), labels, ranges, states)

    with pytest.raises(DisagreementError, match="in the trial 'small step"):
        agreement.check(of_steps(Joint(loss=wrong), known))


def test_a_pruned_joiner_is_judged_with_all_states_in_range():
    known = BY_NAME["ours-pruned-joint"]
    all_states, few = of_steps(known.implementation(), known)
    assert all_states.judged and not few.judged
    assert few.gradient > all_states.gradient
    agreement.check([all_states, few])


@pytest.mark.parametrize("name", ["ours-tdt", "ours-multi-blank", "torch-ctc"])
def test_each_kind_is_held_against_its_own_oracle(name):
    known, short = BY_NAME[name], replace(WHOLE_STEP, sizes=((12, 4),), width=8, vocabulary=9)
    loss, where = known.implementation(), ("cpu", torch.float32, 0)
    (step,) = agreement.step_deviations(known, loss, *where, 5, [short])
    assert step.loss <= 1e-6
    assert step.gradient <= 1e-5
    few = [replace(trial, sizes=((9, 3), (7, 2))) for trial in QUICK if trial.name not in known.cannot]
    agreement.check(agreement.logit_deviations(known, loss, *where, few))
    with pytest.raises(DisagreementError):
        agreement.check(agreement.logit_deviations(known, lambda *given: 1.01 * loss(*given), *where, few[:1]))


KINDS = ("ours", "ours-torch", "ours-pruned", "ours-joint", "ours-pruned-joint")


def test_every_kind_of_loss_is_compared_on_the_same_tensors_of_the_whole_step():
    found = {name: of_steps(BY_NAME[name].implementation(), BY_NAME[name])[-1] for name in KINDS}
    assert {deviation.name for deviation in found.values()} == {"whole step"}
    exact, pruned = (
        [found[name] for name in KINDS if BY_NAME[name].pruned is is_pruned] for is_pruned in (False, True)
    )
    assert max(deviation.gradient for deviation in exact) < 1e-5
    # both ways compute the same pruned loss of the same tensors, so that they are as far away
    assert pruned[0].gradient == pytest.approx(pruned[1].gradient, rel=1e-3)
    assert pruned[0].gradient > 1e-3


def test_the_whole_step_of_an_exact_loss_has_its_row_and_no_part_in_the_total():
    known = BY_NAME["ours"]
    ours = [*found(known.implementation(), trials=QUICK[:1]), *of_steps(known.implementation(), known)[1:]]
    rows = {(m.metric, m.scope): m for m in agreement.measurements(ours)}
    assert rows["gradient_deviation.v1", "total"].values == (ours[0].gradient,)
    assert rows["gradient_deviation.v1", "label:whole step"].values == (ours[1].gradient,)
    assert rows["gradient_deviation.v1", "label:whole step"].notes == {"judged": False}
