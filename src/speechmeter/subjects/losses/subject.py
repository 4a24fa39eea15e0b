"""`transducer-loss:NAME`: a loss alone, or the whole step around it. Imports no torch until it is prepared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import NONE, Axis, Option
from speechmeter.core.errors import NeedsValuesError, SubjectError
from speechmeter.core.plugins import nearest
from speechmeter.core.protocols import SHAPES, Installed, Prepared
from speechmeter.core.types import Case, Measurement, Stage
from speechmeter.subjects.common import installed
from speechmeter.subjects.losses.known import ALL, BY_NAME, FRAMES, TRANSDUCER, Known

if TYPE_CHECKING:
    import torch

    from speechmeter.subjects.losses.step import Recipe

LOSS, STEP = "loss", "step"
ORIGINAL = "original"
_STATES = "states"


class TransducerLossSubject:
    """Input (outside the clock) → joiner → loss → backward; the loss alone starts from logits that are there."""

    summary = "a transducer loss by name, measured alone or in a training step; its input is a `shapes:` workload"
    axes = (
        Axis(name="part", kind=str, default=STEP, choices=(LOSS, STEP),
             help="loss: only the loss and its backward pass, on given logits; step: joiner, loss and backward pass"),
        Axis(name="vocabulary", kind=int, default=500, minimum=2, help="size of the joiner's output, blank included"),
        Axis(name="keep", kind=str, default=NONE, choices=(NONE, ORIGINAL),
             help="what the training code keeps in memory until the backward pass: none, or original (the joiner's "
                 "input and the logits, as in transducer-loss-benchmarking)"),
    )  # fmt: skip
    options = (
        Option(
            name=_STATES,
            kind=int,
            default=5,
            minimum=2,
            help="number of label positions that a pruned loss keeps for each frame",
        ),
    )
    runs_code = False
    takes = (SHAPES,)

    def installed(self) -> Installed:
        """Needs torch; each loss answers for itself."""
        own = installed("torch", extra="transducer")
        return Installed(version=own.version, missing=own.missing, choices=tuple(known.choice() for known in ALL))

    def check(self, case: Case) -> None:
        """The loss must be a known one, and `states` a number for a pruned one."""
        known = _known(case)
        if _STATES in case.subject.options and not known.pruned:
            raise SubjectError(f"{known.name} is not a pruned loss and has no {_STATES}", fix=f"remove `{_STATES}`")

    def unavailable(self, case: Case) -> str | None:
        """Why this loss is not available here, or not for what the case asks."""
        known = BY_NAME.get(case.subject.source)
        if known is None:
            return None  # `check` refuses it
        return known.missing() or _refusal(known, case)

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the loss and compare it with the oracle. Raises DisagreementError where they differ."""
        import torch

        from speechmeter.subjects import torch_runtime as runtime
        from speechmeter.subjects.losses.step import Recipe

        known = _known(case)
        dtype = runtime.configure(case)
        if type(torch.zeros(2)) is not torch.Tensor:
            raise NeedsValuesError("a transducer loss needs the lengths in its batch, so it cannot run on shapes alone")
        recipe = Recipe(
            known=known,
            vocabulary=int(case.axes["vocabulary"]),
            dtype=dtype,
            device=device,
            seed=case.protocol.seed,
            keep=case.axes["keep"] == ORIGINAL,
            states=int(case.subject.options.get(_STATES, self.options[0].default)),
        )
        loss = known.implementation()
        # The oracle leaves large holes in the heap that glibc keeps. A thread has a heap of its own, so that the calls
        # that are measured do not fill those holes: a pruned step of 53 MB read 31 to 49 MB after trials in the same
        # thread, and 53 MB after trials in another.
        with ThreadPoolExecutor(max_workers=1) as thread:
            found = thread.submit(_agreement, recipe, loss).result()
        stages, modules = _chain(recipe, str(case.axes["part"]), loss)
        return Prepared(
            stages=stages, modules=modules, sync=runtime.sync_for(device), notes=_notes(recipe), found=tuple(found)
        )


def _known(case: Case) -> Known:
    known = BY_NAME.get(case.subject.source)
    if known is None:
        name = case.subject.source
        fix = nearest(name, list(BY_NAME)) if name else "for example transducer-loss:ours"
        raise SubjectError(f"there is no transducer loss {name!r}", fix=fix)
    return known


def _refusal(known: Known, case: Case) -> str | None:
    axes = case.axes
    if case.device.kind not in known.devices:
        return f"{known.name} runs on {' and '.join(known.devices)} only, not on {case.device}"
    if axes.dtype not in known.dtypes:
        return f"{known.name} supports `dtype: {' or '.join(known.dtypes)}`, not {axes.dtype}"
    if axes.compile:
        return "torch.compile is not applied to a loss"
    if axes["part"] == LOSS and (known.pruned or known.joint):
        return f"{known.name} includes the joiner, so the loss alone cannot be measured; use `part: step`"
    if axes["part"] == LOSS and known.layout == FRAMES:
        return f"{known.name} has no lattice, so its loss alone has nothing to be compared with; use `part: step`"
    if known.joint and axes["keep"] != NONE:
        return f"`keep: {axes['keep']}` applies to logits, but {known.name} computes none"
    if axes["part"] == LOSS and axes["keep"] != NONE:
        return f"`keep: {axes['keep']}` needs `part: step`: with the loss alone, there are no intermediate tensors to "
        "keep"
    return None


def _agreement(recipe: Recipe, loss: Any) -> list[Measurement]:
    from speechmeter.subjects.losses import agreement
    from speechmeter.subjects.losses.remembered import remembered

    case = recipe.dtype, recipe.seed, recipe.states
    found = remembered(
        recipe.known, case, recipe.device, lambda: agreement.deviations(recipe.known, loss, recipe.device, *case)
    )
    agreement.check(found)
    return agreement.measurements(found)


def _chain(recipe: Recipe, part: str, loss: Any) -> tuple[tuple[Stage, ...], dict[str, Any]]:
    import torch

    from speechmeter.subjects.losses import step

    def linear() -> torch.nn.Linear:
        return torch.nn.Linear(step.WIDTH, recipe.outputs).to(device=recipe.device, dtype=recipe.dtype)

    if part == LOSS:
        return step.loss_stages(recipe, loss), {}
    output = linear()
    modules: dict[str, Any] = {"joiner": output}
    known, simple = recipe.known, None
    # up to this width the simple loss takes both sides as they are, as in the original study
    if known.pruned and recipe.vocabulary > step.WIDTH:
        simple = torch.nn.ModuleDict({"encoder": linear(), "predictor": linear()})
        modules["simple"] = simple
    if known.joint:
        return step.joint_stages(recipe, output, simple, loss), modules
    if known.pruned:
        return step.pruned_stages(recipe, output, simple, loss), modules
    return step.step_stages(recipe, output, loss), modules


def _notes(recipe: Recipe) -> tuple[str, ...]:
    known = recipe.known
    kind = f"pruned to {recipe.states} states per frame" if known.pruned else "exact"
    kind = kind if known.kind == TRANSDUCER else f"{known.kind}, {kind}"
    in_place = ", in place" if known.in_place else ""
    apart = "; the simple loss and the pruned loss are not summed" if known.pruned else ""
    held = (
        "the joiner's input and the logits stay in memory during the step"
        if recipe.keep
        else "only the tensors that autograd needs stay in memory"
    )
    return (
        f"{known.name}: {kind}, {known.layout}, input: {known.takes}; labels: {known.integers[0]}{in_place}; blank: 0",
        f"random tensors for the shapes of each batch{apart}",
        f"`keep: {ORIGINAL if recipe.keep else NONE}`: {held}",
    )
