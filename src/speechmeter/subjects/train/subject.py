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
    from speechmeter.subjects.train.task import Task

CONFORMER = "conformer-transducer"
BFLOAT16 = "bfloat16"
_STATES = "states"
_STATES_OPTION = Option(
    name=_STATES, kind=int, default=5, minimum=2, help="label states a frame keeps in the pruned loss"
)
_TABLES = (
    Option(name="rows", kind=dict, default={}, help="rows of the table, such as {attention: layers.*.self_attn}"),
    Option(name="published", kind=dict, default={}, help="such as {name: V100, forward_ms: {embed: 168}}"),
)
_AXES = (
    Axis(name="amp", kind=str, default=NONE, choices=(NONE, BFLOAT16), help="autocast of forward and loss"),
    Axis(name="accumulate", kind=int, default=1, minimum=1, help="pieces of a batch whose gradients are added up"),
    Axis(name="checkpoint", kind=str, default=NONE, choices=(NONE, "reentrant", "non-reentrant"),
         help="repeated layers keep no activations and are computed again in the backward pass"),
    Axis(name="optimizer", kind=str, default=NONE, choices=(NONE, "sgd", "adam", "adamw"),
         help="what updates the weights; none: the step ends with the backward pass"),
    Axis(name="compile_blocks", kind=bool, default=False, help="torch.compile every repeated layer on its own"),
)  # fmt: skip


_SIZES = (
    Axis(name="layers", kind=int, default=12, minimum=1, help="layers of the encoder"),
    Axis(name="width", kind=int, default=512, minimum=2, help="numbers a frame has between the layers"),
    Axis(name="heads", kind=int, default=8, minimum=1, help="heads of attention"),
    Axis(name="inner", kind=int, default=2048, minimum=1, help="numbers a frame has inside a feed-forward"),
    Axis(name="kernel", kind=int, default=31, minimum=1, help="frames that the depthwise convolution sees; odd"),
    Axis(name="vocabulary", kind=int, default=500, minimum=2, help="ids of the joiner's output, blank included"),
)


class TrainSubject:
    """A step of a model that is built in."""

    summary = "a training step by name: train:conformer-transducer; fed `shapes:`"
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
        _check_sizes(case)
        check_tables(case.subject.options)

    def unavailable(self, case: Case) -> str | None:
        """Shapes must be those of raw frames: the encoder itself subsamples them."""
        if case.workload.options.get("frames") != "raw":
            return "a training step is fed raw frames: add `frames: raw` to `shapes:`"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Build the model and its step on the device."""
        return prepare_task(_conformer, case, device, notes=("random weights and features, same cost, no meaning",))


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
        """Only running it can tell."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Import the module, call the factory, and build the step of what it returns."""
        return prepare_task(_users, case, device)


def _check_sizes(case: Case) -> None:
    width, heads, kernel = (case.axes[name] for name in ("width", "heads", "kernel"))
    if width % (2 * heads):
        raise SubjectError(f"a width of {width} cannot be split into {heads} even heads", fix="change width or heads")
    if kernel % 2 == 0:
        raise SubjectError(f"kernel {kernel} is even", fix="use an odd one, so that frames stay aligned")


def check_tables(options: Mapping[str, Any]) -> None:
    """`rows` maps a name to a pattern or several, `published` has milliseconds by row. Raises SubjectError."""
    rows, published = options.get("rows", {}), options.get("published", {})
    patterns = rows.values() if isinstance(rows, Mapping) else [None]
    if not all(isinstance(one, str) or (isinstance(one, list | tuple) and all(map(_is_word, one))) for one in patterns):
        raise SubjectError(
            "rows maps the name of a row to a pattern of module paths, or to several",
            fix="for example rows: {attention: encoder.layers.*.self_attn}",
        )
    times = published.get("forward_ms", {}) if isinstance(published, Mapping) else None
    if not isinstance(times, Mapping) or not all(isinstance(value, int | float) for value in times.values()):
        raise SubjectError(
            "published maps `forward_ms` to milliseconds by row",
            fix="for example {name: V100, forward_ms: {embed: 168}}",
        )


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _conformer(case: Case) -> Task:
    from speechmeter.subjects.train.conformer import Size
    from speechmeter.subjects.train.transducer import ConformerTransducer

    states = int(case.subject.options.get(_STATES, _STATES_OPTION.default))
    size = Size(**{axis.name: case.axes[axis.name] for axis in _SIZES})
    loss, checkpoint = str(case.axes["loss"]), str(case.axes["checkpoint"])
    return ConformerTransducer(size, loss=loss, states=states, checkpointing=checkpoint)


def _users(case: Case) -> Task:
    """A factory that is to checkpoint says so by an argument of that name: only the model knows what to keep."""
    from speechmeter.subjects.train.task import as_task

    factory, checkpoint = load_factory(case), str(case.axes["checkpoint"])
    takes = "checkpoint" in inspect.signature(factory).parameters
    if checkpoint != NONE and not takes:
        raise SubjectError(
            f"{case.subject.source} takes no `checkpoint`, so {checkpoint} checkpointing cannot be asked of it",
            fix="give the factory an argument `checkpoint`, or leave the axis at none",
        )
    return as_task(factory(checkpoint=checkpoint) if takes else factory(), case.subject.source)


def prepare_task(make: Any, case: Case, device: str, notes: tuple[str, ...] = ()) -> Prepared:
    """The stages of a step around what `make(case)` returns."""
    import torch

    from speechmeter.subjects import torch_runtime as runtime
    from speechmeter.subjects.train.compiling import compile_as_asked
    from speechmeter.subjects.train.step import Recipe, step_stages

    dtype = runtime.configure(case)
    if type(torch.zeros(2)) is not torch.Tensor:
        raise NeedsValuesError("a training step goes back from the value of its loss")
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
