"""What `transducer-loss:` answers for itself, and what it prepares."""

import ast
import importlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from threading import get_ident
from types import SimpleNamespace

import pytest
from conftest import make_case

import speechmeter
from speechmeter.core import plugins
from speechmeter.core.errors import DisagreementError, InputError
from speechmeter.core.types import Spec
from speechmeter.subjects.losses.known import ALL, BY_NAME, ORIGINAL_SIZE
from speechmeter.subjects.losses.subject import TransducerLossSubject

SUBJECT = TransducerLossSubject()
NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


def case(name, options=None, **axes):
    subject = Spec(plugin="transducer-loss", name=name, source=name, options=options or {})
    return make_case(subject=subject, **{"part": "step", "vocabulary": 11, "keep": "none", **axes})


def test_every_declared_loss_has_its_function():
    for known in ALL:
        module, _, function = known.load.partition(":")
        path = Path(speechmeter.__file__).parents[1] / (module.replace(".", "/") + ".py")
        names = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        assert function in names, known.name


def test_the_listing_has_a_row_for_each_with_a_version_or_the_way_to_get_it():
    rows = {choice.source: choice for choice in SUBJECT.installed().choices}
    assert list(rows) == [known.name for known in ALL]
    assert rows["ours"].version == f"speechmeter {speechmeter.__version__}"
    for known in ALL:
        present = known.missing() is None
        assert (rows[known.name].missing is None) is present
        assert bool(rows[known.name].version) is present
        assert present or known.get in rows[known.name].missing


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("our", {}, "there is no transducer loss 'our'; did you mean 'ours'"),
        ("", {}, "transducer-loss:ours"),
        ("ours", {"states": 5}, "ours is not a pruned loss and has no states"),
    ],
)
def test_what_cannot_be_meant_is_refused(name, options, said):
    with pytest.raises(InputError, match=said):
        SUBJECT.check(case(name, options))


@pytest.mark.parametrize(
    ("name", "axes", "said"),
    [
        ("ours-pruned", {"part": "loss"}, "the loss alone cannot be measured"),
        ("ours", {"part": "loss", "keep": "original"}, "needs `part: step`"),
        ("ours", {"compile": True}, "torch.compile"),
        ("torch-ctc", {"part": "loss"}, "has no lattice"),
        ("ours", {}, None),
        ("ours", {"dtype": "bfloat16", "device": "cuda:0"}, None),
        ("our", {}, None),
    ],
)
def test_what_cannot_be_had_says_why(name, axes, said):
    reason = SUBJECT.unavailable(case(name, **axes))
    assert reason is None if said is None else said in reason


def test_an_empty_folder_of_that_name_is_no_package(monkeypatch, tmp_path):
    (tmp_path / "warp_rnnt").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert "not installed" in BY_NAME["warp-rnnt"].missing()
    (tmp_path / "warp_rnnt" / "__init__.py").touch()
    importlib.invalidate_caches()
    assert BY_NAME["warp-rnnt"].missing() is None


def test_an_older_version_of_a_package_is_not_enough(monkeypatch, tmp_path):
    folder = tmp_path / "returnn"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert "installed without torch/util/rnnt.py" in BY_NAME["returnn"].missing()
    (folder / "torch/util").mkdir(parents=True)
    (folder / "torch/util/rnnt.py").touch()
    assert BY_NAME["returnn"].missing() is None


def test_a_loss_for_cuda_alone_refuses_the_cpu(monkeypatch):
    monkeypatch.setattr("speechmeter.subjects.losses.known.find_spec", lambda name: SimpleNamespace(origin="here"))
    assert SUBJECT.unavailable(case("warp-rnnt")) == "warp-rnnt runs on cuda only, not on cpu"
    assert SUBJECT.unavailable(case("warp-rnnt", device="cuda:1")) is None
    assert "supports `dtype: float32`, not float16" in SUBJECT.unavailable(
        case("warp-rnnt", device="cuda", dtype="float16")
    )


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """Nothing that was found before is known here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def quick(monkeypatch):
    """Without the trials of original size, whose oracle takes seconds."""
    from speechmeter.subjects.losses import agreement

    monkeypatch.setattr(agreement, "TRIALS", tuple(t for t in agreement.TRIALS if t.name != ORIGINAL_SIZE))
    monkeypatch.setattr(agreement, "WHOLE_STEP", replace(agreement.WHOLE_STEP, sizes=((40, 10),)))


@NEEDS_TORCH
@pytest.mark.usefixtures("quick")
def test_preparing_finds_the_deviations_and_names_the_joiner():
    prepared = plugins.subject("transducer-loss").prepare(case("ours", keep="original"), "cpu")
    assert list(prepared.modules) == ["joiner"]
    assert {m.metric for m in prepared.found} == {"loss_deviation.v1", "gradient_deviation.v1"}
    assert any("keep: original" in note for note in prepared.notes)
    assert next(m for m in prepared.found if m.scope == "total").values[0] <= 1e-6


@NEEDS_TORCH
def test_trials_leave_no_holes_in_the_heap_of_the_measured_thread(monkeypatch):
    from speechmeter.subjects.losses import agreement

    threads = []
    trial = agreement.Deviation(name="random")
    monkeypatch.setattr(agreement, "deviations", lambda *given: threads.append(get_ident()) or [trial])
    SUBJECT.prepare(case("ours"), "cpu")
    assert len(threads) == 1
    assert threads != [get_ident()]


@NEEDS_TORCH
@pytest.mark.usefixtures("quick")
def test_a_loss_that_disagrees_is_never_ready(monkeypatch):
    from speechmeter.subjects.losses import ours
    from speechmeter.transducer import rnnt_loss

    def wrong(logits, labels):
        return rnnt_loss(logits, labels.targets, labels.frames, labels.labels, reduction="none")

    monkeypatch.setattr(ours, "_exact", wrong)
    with pytest.raises(
        DisagreementError,
        match=r"differs from the float64 reference: the error of the loss is .* in the trial 'random'",
    ):
        SUBJECT.prepare(case("ours"), "cpu")


@NEEDS_TORCH
def test_shapes_alone_are_refused_before_anything_is_computed():
    from speechmeter.core.errors import NeedsValuesError
    from speechmeter.meters.flops.shapes_only import shapes_only

    with shapes_only(), pytest.raises(NeedsValuesError, match="lengths in its batch, so it cannot run on shapes alone"):
        SUBJECT.prepare(case("ours"), "cpu")


@NEEDS_TORCH
def test_speechbrains_division_by_frames_is_undone_in_the_loss_alone():
    import torch

    from speechmeter.subjects.losses.others import undivided

    losses = torch.tensor([6.0, 8.0], requires_grad=True)
    frames = torch.tensor([3, 2], dtype=torch.int32)
    whole = undivided(losses, frames)
    whole.sum().backward()
    assert whole.tolist() == [18.0, 16.0]
    assert losses.grad.tolist() == [1.0, 1.0]


@NEEDS_TORCH
@pytest.mark.skipif(find_spec("speechbrain") is None or find_spec("numba") is None, reason="needs speechbrain, numba")
def test_speechbrains_loss_is_found_without_torchaudio_and_refuses_the_cpu_itself():
    import torch

    from speechmeter.subjects.losses.call import Labels

    labels = Labels.drawn(((4, 2),), 5, "int32", torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="'cuda' device"):
        BY_NAME["speechbrain"].implementation()(torch.zeros(1, 4, 3, 5), labels)


def test_every_trap_stands_in_the_documentation():
    page = (Path(__file__).parents[4] / "docs/explanation/losses.md").read_text()
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line.startswith("| `")}
    for known in ALL:
        row = rows[known.name]
        assert known.layout == "padded" or known.layout in row
        assert known.takes == "logits" or f"takes {known.takes}" in row
        assert known.integers[0] in row
        assert ("`cuda` only" in row) == ("cpu" not in known.devices)
    assert set(rows) >= set(BY_NAME)
