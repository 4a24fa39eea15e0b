"""`train:NAME` and `train-python:file.py:make`: a training step. Imports no torch until it is prepared."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import NONE, Axis, Option
from speechmeter.core.errors import NeedsValuesError, SubjectError
from speechmeter.core.plugins import nearest
from speechmeter.core.protocols import SHAPES, Choice, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.common import installed
from speechmeter.subjects.python import check_source, load_factory

if TYPE_CHECKING:
    from speechmeter.subjects.train.step import Task

CONFORMER = "conformer-transducer"
BFLOAT16 = "bfloat16"
_STATES = "states"
_STATES_OPTION = Option(
    name=_STATES,
    kind=int,
    default=5,
    minimum=2,
    help="number of label positions that the pruned loss keeps for each frame",
)
_TABLES = (
    Option(
        name="rows",
        kind=dict,
        default={},
        help=(
            "rows of the table of modules: a name and a pattern of module paths, such as {attention: "
            "layers.*.self_attn}"
        ),
    ),
    Option(
        name="published",
        kind=dict,
        default={},
        help="published times to compare with, such as {name: V100, forward_ms: {embed: 168}}",
    ),
)
_AXES = (
    Axis(name="amp", kind=str, default=NONE, choices=(NONE, BFLOAT16), help=(
        "number format of torch.autocast in forward pass and loss"
    )),
    Axis(name="accumulate", kind=int, default=1, minimum=1, help="number of parts into which a batch is divided; "
                                                                 "their gradients are accumulated"),
    Axis(name="checkpoint", kind=str, default=NONE, choices=(NONE, "reentrant", "non-reentrant"),
         help="repeated layers keep no activations and are computed again in the backward pass"),
    Axis(name="optimizer", kind=str, default=NONE, choices=(NONE, "sgd", "adam", "adamw"),
         help="optimizer that updates the weights; none: the step ends with the backward pass"),
    Axis(name="compile_blocks", kind=bool, default=False, help="torch.compile each repeated layer separately"),
)  # fmt: skip


_SIZES = (
    Axis(name="layers", kind=int, default=12, minimum=1, help="layers of the encoder"),
    Axis(name="width", kind=int, default=512, minimum=2, help="dimension of a frame between the layers"),
    Axis(name="heads", kind=int, default=8, minimum=1, help="attention heads"),
    Axis(name="inner", kind=int, default=2048, minimum=1, help="dimension of a frame inside a feed-forward module"),
    Axis(
        name="kernel",
        kind=int,
        default=31,
        minimum=1,
        help="kernel size of the depthwise convolution in frames; must be odd",
    ),
    Axis(name="vocabulary", kind=int, default=500, minimum=2, help="ids of the joiner's output, blank included"),
)


class TrainSubject:
    """A step of a model that is built in."""

    summary = "a built-in training step: train:conformer-transducer; its input is a `shapes:` workload"
    axes = (
        *_AXES,
        *_SIZES,
        Axis(name="loss", kind=str, default="pruned", choices=("pruned", "full"), help="transducer loss"),
    )
    options = (_STATES_OPTION, *_TABLES)
    runs_code = False
    takes = (SHAPES,)

    def installed(self) -> Installed:
        """Needs torch."""
        own = installed("torch", extra="torch")
        choice = Choice(source=CONFORMER, summary="Conformer with a stateless decoder, 78.6 M parameters")
        return Installed(version=own.version, missing=own.missing, choices=(choice,))

    def check(self, case: Case) -> None:
        """The model must be a known one, and its sizes numbers that fit together."""
        if case.subject.source != CONFORMER:
            raise SubjectError(
                f"there is no training step {case.subject.source!r}", fix=nearest(case.subject.source, [CONFORMER])
            )
        width, heads, kernel = (case.axes[name] for name in ("width", "heads", "kernel"))
        if width % (2 * heads):
            raise SubjectError(
                f"a width of {width} cannot be divided into {heads} heads of even size", fix="change `width` or `heads`"
            )
        if kernel % 2 == 0:
            raise SubjectError(f"a kernel of even size ({kernel}) would shift the frames", fix="use an odd `kernel`")
        check_tables(case.subject.options)

    def unavailable(self, case: Case) -> str | None:
        """Shapes must be those of raw frames, because the encoder itself subsamples them."""
        if case.workload.options.get("frames") != "raw":
            return "a training step needs raw frames: add `frames: raw` under `shapes:`"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Build the model and its step on the device."""
        return prepare_task(
            _conformer,
            case,
            device,
            notes=(
                "random weights and features; calls cost the same as with trained ones, but the output has no meaning",
            ),
        )


class TrainPythonSubject:
    """A step of a user's own model and loss."""

    summary = "a training step of your own model and loss: train-python:path/file.py:factory"
    axes = _AXES
    options = _TABLES
    runs_code = True
    takes: tuple[str, ...] = ()

    def installed(self) -> Installed:
        """Needs torch."""
        return installed("torch", extra="torch")

    def check(self, case: Case) -> None:
        """File and factory must exist; the code is read, not run."""
        check_source(case.subject.source)
        check_tables(case.subject.options)

    def unavailable(self, case: Case) -> str | None:
        """Unknown before it runs."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Import the module, call the factory, and build the step of what it returns."""
        return prepare_task(_users, case, device)


def check_tables(options: Mapping[str, Any]) -> None:
    """`rows` maps a name to a pattern or several, `published` has milliseconds by row. Raises SubjectError."""
    patterns = [
        pattern
        for row in options.get("rows", {}).values()
        for pattern in (row if isinstance(row, list | tuple) else [row])
    ]
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise SubjectError(
            "rows maps the name of a row to a pattern of module paths, or to several",
            key="rows",
            fix="for example {attention: encoder.layers.*.self_attn}",
        )
    times = options.get("published", {}).get("forward_ms", {})
    if not isinstance(times, Mapping) or not all(isinstance(value, int | float) for value in times.values()):
        raise SubjectError(
            "forward_ms must give milliseconds for names of rows in the table of modules (see the option `rows`)",
            key="published",
            fix="for example {name: V100, forward_ms: {embed: 168}}",
        )


def _conformer(case: Case) -> Task:
    from speechmeter.subjects.train.conformer import Size
    from speechmeter.subjects.train.transducer import ConformerTransducer

    states = int(case.subject.options.get(_STATES, _STATES_OPTION.default))
    size = Size(**{axis.name: case.axes[axis.name] for axis in _SIZES})
    loss, checkpoint = str(case.axes["loss"]), str(case.axes["checkpoint"])
    return ConformerTransducer(size, loss=loss, states=states, checkpointing=checkpoint)


def _users(case: Case) -> Task:
    """A factory that supports checkpointing has an argument of that name: only the model knows what to keep."""
    from speechmeter.subjects.train.step import as_task

    factory, checkpoint = load_factory(case), str(case.axes["checkpoint"])
    takes = "checkpoint" in inspect.signature(factory).parameters
    if checkpoint != NONE and not takes:
        raise SubjectError(
            f"{case.subject.source} has no argument checkpoint, which {checkpoint} checkpointing needs",
            fix="add the argument to the factory, or use `checkpoint: none`",
        )
    return as_task(factory(checkpoint=checkpoint) if takes else factory(), case.subject.source)


def prepare_task(make: Any, case: Case, device: str, notes: tuple[str, ...] = ()) -> Prepared:
    """The stages of a step around what `make(case)` returns."""
    import torch

    from speechmeter.subjects import torch_runtime as runtime
    from speechmeter.subjects.train.step import Recipe, compile_as_asked, step_stages

    dtype = runtime.configure(case)
    if type(torch.zeros(2)) is not torch.Tensor:
        raise NeedsValuesError("a training step needs the value of its loss, so it cannot run on shapes alone")
    task = make(case)
    for module in task.modules.values():
        module.to(device=device, dtype=dtype).train()
    compile_as_asked(task.modules, case)
    recipe = Recipe(
        task=task,
        device=device,
        amp=None if case.axes["amp"] == NONE else getattr(torch, str(case.axes["amp"])),
        accumulate=int(case.axes["accumulate"]),
        optimizer=str(case.axes["optimizer"]),
    )
    return Prepared(stages=step_stages(recipe), modules=dict(task.modules), sync=runtime.sync_for(device), notes=notes)
