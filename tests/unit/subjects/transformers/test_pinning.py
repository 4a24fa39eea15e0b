"""How random weights are held to a length."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from speechmeter.subjects.transformers.pinning import (  # noqa: E402
    SteeredJoint,
    pin_durations,
    pin_log1p_durations,
    pin_log_durations,
    transducer_steps,
)


@pytest.mark.parametrize(("frames", "tokens", "longest"), [(25, 9, 0), (9, 25, 0), (25, 9, 4), (200, 3, 4), (4, 9, 4)])
def test_a_transducer_walks_over_all_frames_and_makes_all_tokens(frames, tokens, longest):
    steps = list(transducer_steps(frames, tokens, longest))
    assert sum(not blank for blank, _ in steps) == tokens
    assert sum(moved for _, moved in steps) == frames
    assert all(moved <= max(longest, 1) for _, moved in steps)
    assert all(moved > 0 for blank, moved in steps if blank)
    if longest == 0:
        assert len(steps) == frames + tokens


def test_a_steered_joint_decides_as_planned():
    joint = torch.nn.Linear(4, 6 + 5)
    steered = SteeredJoint(joint, vocabulary=6, blank=5, token=1, durations=5)
    count = steered.plan([10, 3], 2)
    planned = [list(transducer_steps(frames, 2, 4)) for frames in (10, 3)]
    assert count == max(map(len, planned))
    for step in range(2):
        logits = joint(torch.randn(2, 1, 1, 4))[:, 0, 0]
        for row in range(2):
            blank, moved = planned[row][step]
            assert logits[row, :6].argmax() == (5 if blank else 1)
            assert logits[row, 6:].argmax() == moved


@pytest.mark.parametrize("frames", [1, 2, 5, 20])
def test_pinned_durations_are_what_the_models_make_of_them(frames):
    whole, log, log1p = (torch.nn.Linear(3, 7) for _ in range(3))
    pin_durations(whole, frames)
    pin_log_durations(log, frames)
    pin_log1p_durations(log1p, frames)
    given = torch.randn(2, 3)
    assert whole(given).tolist() == [[frames] * 7] * 2
    assert torch.ceil(torch.exp(log(given))).tolist() == [[frames] * 7] * 2
    assert torch.round(torch.expm1(log1p(given))).tolist() == [[frames] * 7] * 2
    half = given.to(torch.bfloat16)
    assert torch.ceil(torch.exp(log.to(torch.bfloat16)(half))).tolist() == [[frames] * 7] * 2
