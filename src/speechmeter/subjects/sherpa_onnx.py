"""Recognisers of sherpa-onnx: `sherpa-onnx:DIR` with one CTC model and its tokens.txt.

The model's own metadata says of which kind it is. A directory does not tell whether its weights were trained: the
option `weights: random` says that they were not.
"""

from __future__ import annotations

from pathlib import Path

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.installed import installed


class SherpaOnnxSubject:
    """`sherpa-onnx:DIR`: features → model → decode."""

    summary = "offline CTC recognisers of sherpa-onnx: sherpa-onnx:DIR with a .onnx file and tokens.txt"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(name="model"),
        Option(name="weights"),
    )
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs sherpa-onnx, and onnx to read the model's metadata and weights."""
        return installed("sherpa_onnx", "onnx", extra="sherpa-onnx")

    def check(self, case: Case) -> None:
        """One model and its tokens must be there."""
        folder, options = Path(case.subject.source), case.subject.options
        if not case.subject.source or not folder.is_dir():
            raise SubjectError(
                f"sherpa-onnx: there is no directory {case.subject.source!r}", fix="name a model's folder"
            )
        model_file(case)
        if not (folder / "tokens.txt").is_file():
            raise SubjectError(f"{str(folder)!r} holds no tokens.txt", fix="put it beside the model")
        if options.get("weights", "auto") not in ("auto", "random"):
            raise SubjectError(f"weights takes auto or random, not {options['weights']!r}", fix="mend weights")

    def unavailable(self, case: Case) -> str | None:
        """Its wheels are for the CPU, and the graph decides the number format."""
        if not case.device.is_cpu:
            return "sherpa-onnx is run on the CPU only: its wheels have no CUDA provider"
        if case.axes["dtype"] != "float32":
            return "sherpa-onnx computes as its graph says and takes float32: name a graph in that format instead"
        if case.axes["compile"]:
            return "onnxruntime optimises a graph by itself: torch.compile has no part in it"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the recogniser."""
        from speechmeter.subjects.sherpa_onnx_chain import prepare_chain

        return prepare_chain(case)


def model_file(case: Case) -> Path:
    """The model that is asked for, else the only one of the directory. Raises SubjectError when that is not one."""
    folder, asked = Path(case.subject.source), case.subject.options.get("model")
    found = sorted(file.name for file in folder.glob("*.onnx"))
    if asked is not None:
        if asked not in found:
            raise SubjectError(f"{str(folder)!r} holds no model {asked!r}", fix=f"it has: {', '.join(found) or 'none'}")
        return folder / str(asked)
    if len(found) == 1:
        return folder / found[0]
    if not found:
        raise SubjectError(f"{str(folder)!r} holds no .onnx file", fix="name a model's folder")
    raise SubjectError(f"{str(folder)!r} holds {len(found)} models", fix=f"say model: {' or '.join(found)}")
