"""A training step: its stages, what they hold, and that the axes do what they say."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import make_case

torch = pytest.importorskip("torch", reason="needs torch")

from speechmeter.core.errors import SubjectError  # noqa: E402
from speechmeter.core.stages import run_chain  # noqa: E402
from speechmeter.core.types import Batch, Spec  # noqa: E402
from speechmeter.subjects.train.conformer import Size  # noqa: E402
from speechmeter.subjects.train.step import PairTask, Recipe, as_task, pieces, step_stages  # noqa: E402  # noqa: E402
from speechmeter.subjects.train.subject import TrainPythonSubject, TrainSubject, check_tables  # noqa: E402
from speechmeter.subjects.train.transducer import FULL, ConformerTransducer  # noqa: E402

SMALL = Size(layers=2, width=32, heads=2, inner=48, kernel=5, vocabulary=11, dropout=0.0)
BATCH = Batch(data=np.array([[120, 9], [100, 7], [90, 5], [80, 4]], dtype=np.int32), items=4)


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_published_size_has_the_published_parameters():
    with torch.device("meta"):
        task = ConformerTransducer(Size())
    simple = task.modules["loss_simple"]
    assert parameters(task.encoder) == 77_096_192
    assert parameters(task.decoder) == 257_026
    assert parameters(task.joiner) == 781_818
    assert [parameters(part) for part in (simple.am_proj, simple.lm_proj)] == [256_502, 256_502]
    assert sum(parameters(module) for module in task.modules.values()) == 78_648_040


def small(seed=0, **options):
    torch.manual_seed(seed)
    return ConformerTransducer(SMALL, **options)


def gradients(task, **recipe):
    run_chain(step_stages(Recipe(task=task, device="cpu", **recipe)), BATCH)
    return {
        f"{root}.{name}": parameter.grad
        for root, module in task.modules.items()
        for name, parameter in module.named_parameters()
    }


def assert_same(found, expected, tolerance=1e-4):
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("checkpointing", ["reentrant", "non-reentrant"])
def test_checkpointing_changes_no_gradient(checkpointing):
    assert_same(gradients(small(checkpointing=checkpointing)), gradients(small()))


def test_every_parameter_of_the_encoder_gets_a_gradient():
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients(small()).values())


def test_padding_changes_no_output():
    task = small()
    for module in task.modules.values():
        module.eval()
    long, short = (
        Batch(data=np.array(rows, dtype=np.int32), items=len(rows)) for rows in ([[120, 9], [80, 4]], [[80, 4]])
    )
    both, alone = task.data(long), task.data(short)
    features = both.features.clone()
    features[1, :80] = alone.features[0]
    padded, _ = task.encoder(features, both.lengths)
    single, lengths = task.encoder(alone.features, alone.lengths)
    frames = int(lengths[0])
    assert frames == 19
    # the convolutions of the subsampling see what follows the last frame, as in the original
    torch.testing.assert_close(padded[1, : frames - 1], single[0, : frames - 1], rtol=1e-4, atol=1e-4)


def test_accumulated_gradients_are_the_mean_over_pieces():
    whole = gradients(small(), accumulate=1)
    twice = small()
    halves = [Batch(data=BATCH.data[part], items=2) for part in (slice(0, 2), slice(2, 4))]
    for half in halves:
        (twice.loss(twice.forward(twice.data(half))) / 2).backward()
    expected = {f"{r}.{n}": p.grad for r, m in twice.modules.items() for n, p in m.named_parameters()}
    found = gradients(small(), accumulate=2)
    assert_same(found, expected)
    assert any(not torch.allclose(found[name], whole[name]) for name in whole)


def test_stages_are_named_once_each_and_data_stands_outside_the_clock():
    stages = step_stages(Recipe(task=small(), device="cpu", accumulate=2, optimizer="adamw"))
    assert [stage.name for stage in stages] == [
        "data", "forward", "loss", "backward", "forward 2", "loss 2", "backward 2", "optimizer",
    ]  # fmt: skip
    assert [stage.name for stage in stages if not stage.clocked] == ["data"]


def test_an_optimizer_moves_the_weights_and_clears_their_gradients():
    task = small()
    before = task.joiner.output.weight.detach().clone()
    found = gradients(task, optimizer="adamw")
    assert all(gradient is None for gradient in found.values())
    assert 0 < (task.joiner.output.weight - before).abs().max() < 1e-4


def test_without_an_optimizer_gradients_do_not_add_up_over_calls():
    task = small()
    stages = step_stages(Recipe(task=task, device="cpu"))
    run_chain(stages, BATCH)
    first = task.joiner.output.weight.grad.clone()
    run_chain(stages, BATCH)
    torch.testing.assert_close(task.joiner.output.weight.grad, first, rtol=1e-4, atol=1e-4)


def test_amp_runs_products_in_bfloat16_and_the_loss_in_float32():
    task = small()
    seen = []
    task.encoder.layers[0].self_attn.in_proj.register_forward_hook(lambda m, a, out: seen.append(out.dtype))
    (step,) = run_chain(step_stages(Recipe(task=task, device="cpu", amp=torch.bfloat16)), BATCH)[-1:]
    assert seen == [torch.bfloat16]
    assert step.losses[0].dtype == torch.float32
    exact = run_chain(step_stages(Recipe(task=small(), device="cpu")), BATCH)[-1].losses[0]
    assert float(step.losses[0]) == pytest.approx(float(exact), rel=0.02)


def test_the_full_loss_is_the_exact_one_and_the_pruned_one_no_less():
    full, pruned = small(loss=FULL), small(states=10)
    exact = full.loss(full.forward(full.data(BATCH)))
    sides = pruned.forward(pruned.data(BATCH))
    simple = pruned.modules["loss_simple"](sides)
    # with all ten states in range the pruned loss of the same joiner is the exact one
    inside = pruned.modules["loss_pruned"](sides, simple, pruned.joiner)
    assert torch.isfinite(exact)
    expected = full.modules["loss_full"](sides, pruned.joiner)
    assert float(inside.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_pieces_are_even_and_too_many_are_refused():
    assert [piece.items for piece in pieces(BATCH, 3)] == [1, 1, 2]
    assert np.concatenate([piece.data for piece in pieces(BATCH, 3)]).tolist() == BATCH.data.tolist()
    with pytest.raises(SubjectError, match="too few to split into 5 parts"):
        pieces(BATCH, 5)


class Mean(torch.nn.Module):
    def forward(self, output, batch):
        return output.mean() * batch.items


def test_a_pair_of_model_and_loss_is_a_task_and_a_loss_with_parameters_is_trained_too():
    task = as_task((torch.nn.Linear(3, 2), Mean()), "make")
    assert isinstance(task, PairTask)
    batch = Batch(data=np.ones((4, 3), dtype=np.float32), items=4)
    run_chain(step_stages(Recipe(task=task, device="cpu")), batch)
    assert list(task.modules) == ["Linear", "loss"]
    assert task.modules["Linear"].bias.grad.tolist() == pytest.approx([2.0, 2.0])


def test_what_cannot_be_trained_is_refused_with_the_way_out():
    with pytest.raises(SubjectError, match="cannot be trained") as caught:
        as_task(torch.nn.Linear(2, 2), "make")
    assert "(model, loss)" in caught.value.fix


AXES = {
    "amp": "none", "accumulate": 1, "checkpoint": "none", "optimizer": "none", "compile_blocks": False, "layers": 2,
    "width": 32, "heads": 2, "inner": 48, "kernel": 5, "vocabulary": 11, "loss": "pruned",
}  # fmt: skip


def case(source="conformer-transducer", options=None, **axes):
    subject = Spec(plugin="train", name="t", source=source, options=options or {})
    return make_case(subject=subject, **{**AXES, **axes})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "conformer"}, "no training step"),
        ({"width": 30, "heads": 4}, "cannot be divided"),
        ({"kernel": 4}, "even"),
        ({"options": {"rows": {"embed": 5}}}, "rows maps"),
        ({"options": {"published": {"forward_ms": {"a": "x"}}}}, "published"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(change, said):
    with pytest.raises(SubjectError, match=said):
        TrainSubject().check(case(**change))


def test_tables_that_make_sense_are_taken():
    check_tables({"rows": {"a": "enc.*", "b": ["x", "y"]}, "published": {"name": "V100", "forward_ms": {"a": 1}}})


def test_subsampled_shapes_are_refused_with_the_way_out():
    assert "frames: raw" in TrainSubject().unavailable(case())


@pytest.mark.parametrize("blocks", [False, True])
def test_a_factory_from_a_file_is_trained(tmp_path, blocks):
    file = tmp_path / "mine.py"
    file.write_text("import torch\ndef make():\n    return torch.nn.Linear(3, 2), lambda output, batch: output.sum()\n")
    asked = case(source=f"{file}:make", compile_blocks=blocks)
    TrainPythonSubject().check(asked)
    if blocks:
        with pytest.raises(SubjectError, match="ModuleList"):
            TrainPythonSubject().prepare(asked, "cpu")
        return
    prepared = TrainPythonSubject().prepare(asked, "cpu")
    run_chain(prepared.stages, Batch(data=np.ones((2, 3), dtype=np.float32), items=2))
    assert prepared.modules["Linear"].bias.grad.tolist() == [2.0, 2.0]


def test_checkpointing_is_asked_of_a_factory_that_knows_it_and_refused_by_others(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n"
        "def plain(): return torch.nn.Linear(3, 2), lambda output, batch: output.sum()\n"
        "def knows(checkpoint='none'): return torch.nn.Linear(3, {'none': 2}.get(checkpoint, 5)), sum\n"
    )
    made = TrainPythonSubject().prepare(case(source=f"{file}:knows", checkpoint="reentrant"), "cpu")
    assert made.modules["Linear"].out_features == 5
    with pytest.raises(SubjectError, match="has no argument checkpoint"):
        TrainPythonSubject().prepare(case(source=f"{file}:plain", checkpoint="reentrant"), "cpu")


def test_an_utterance_that_subsampling_leaves_nothing_of_is_refused():
    with pytest.raises(SubjectError, match="no frame is left after subsampling"):
        small().data(Batch(data=np.array([[6, 1]], dtype=np.int32), items=1))
