"""ONNX graphs under onnxruntime: `onnx:path/model.onnx`.

The graph says what it is fed: a float input of rank 2 is the waveform, one of rank 3 is our log-mel or a waveform with
a channel, an integer input of rank 1 is the lengths.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.installed import installed

LAYOUTS = ("frames-bands", "bands-frames", "channel-samples")
"""What the last two dimensions of an input of rank 3 can be."""
_OF_CUDA = ("CUDA", "Tensorrt", "NvTensorRT")
_FORM = "write onnx:path/model.onnx"


class OnnxSubject:
    """`onnx:FILE`: features or copy → model."""

    summary = "an ONNX graph under onnxruntime: onnx:path/model.onnx"
    axes: tuple[Axis, ...] = ()
    options = (
        Option(name="layout"),
        Option(name="providers"),
    )
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs onnxruntime, and onnx to read the weights."""
        return installed("onnxruntime", "onnx", extra="onnx")

    def check(self, case: Case) -> None:
        """The file must be there, and the options must be ones that mean something."""
        source, options = case.subject.source, case.subject.options
        if not Path(source).is_file():
            raise SubjectError(f"there is no file {source!r}" if source else "onnx: names no model", fix=_FORM)
        layout = options.get("layout", LAYOUTS[0])
        if layout not in LAYOUTS:
            raise SubjectError(f"layout takes one of {', '.join(LAYOUTS)}, not {layout!r}", fix="mend layout")
        providers = options.get("providers", [""])
        if not isinstance(providers, list) or not providers or not all(isinstance(name, str) for name in providers):
            raise SubjectError(f"providers takes a list of names, not {providers!r}", fix="[CPUExecutionProvider]")

    def unavailable(self, case: Case) -> str | None:
        """torch.compile is not for graphs, and a provider may be missing."""
        if case.axes["compile"]:
            return "onnxruntime optimises a graph by itself: torch.compile has no part in it"
        on_cuda = case.device.is_cuda
        named = case.subject.options.get("providers")
        if isinstance(named, list) and named:
            return _wrong_provider(named, on_cuda=on_cuda)
        if on_cuda and not _has_cuda():
            return "this build of onnxruntime has no CUDA provider: pip install onnxruntime-gpu in place of onnxruntime"
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the graph and map its inputs."""
        from speechmeter.subjects.onnx_chain import prepare_chain

        return prepare_chain(case, device)


def _wrong_provider(named: list[str], *, on_cuda: bool) -> str | None:
    import onnxruntime

    here = onnxruntime.get_available_providers()
    missing = [name for name in named if name not in here]
    if missing:
        return f"this build of onnxruntime has no {missing[0]}, only {', '.join(here)}"
    if str(named[0]).startswith(_OF_CUDA) is not on_cuda:
        return f"{named[0]} does not run on the device that is asked for"
    return None


def _has_cuda() -> bool:
    """Whether the provider's library came with the package; importing it to ask would start it."""
    spec = find_spec("onnxruntime")
    places = (spec.submodule_search_locations if spec else None) or []
    return any(any(Path(place).glob("capi/*providers_cuda*")) for place in places)
