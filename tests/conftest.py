"""What all tests share: the command as a user runs it, a folder of small subjects, and cases made by hand."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from speechmeter.core.axes import Axes
from speechmeter.core.protocol import Protocol, protocol_from_json
from speechmeter.core.types import Case, Measurement, Record, Spec

FAKES = Path(__file__).parent / "fakes"

if not Path("/dev/nvidiactl").exists():  # Triton reads it when it is first imported, which any test may do
    os.environ.setdefault("TRITON_INTERPRET", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script; what tests start inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)

if "PYTEST_XDIST_WORKER" in os.environ:  # workers with as many threads as cores wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

with suppress(ImportError):  # a machine with a GPU may lack it; no test there needs it
    from hypothesis import settings

    settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
    settings.load_profile("untimed")

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module", autouse=True)
def small_heap() -> None:
    """Hide what earlier tests left from the garbage collector.

    A worker that ran a thousand tests holds millions of objects. One collection then takes a second, the memory meter
    asks for a dozen, and one that comes by itself delays whatever is being timed.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    """A working folder that holds the fake subjects, none of which needs torch."""
    for source in FAKES.glob("*.py"):
        (tmp_path / source.name).write_text(source.read_text())
    return tmp_path


@pytest.fixture
def cli(workshop: Path) -> Cli:
    """`cli("run", …)` in the workshop; stdout and stderr as text.

    The command runs in this process: starting Python and importing what a command needs takes longer than most
    commands do. Processes that measure are started by the command as always, and inherit variables that are given.
    With `fresh=True`, or with a PYTHONPATH, the command itself is a new process, as a user starts it.
    """

    def call(
        *args: str, timeout_s: float = 900, fresh: bool = False, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        if not fresh and "PYTHONPATH" not in environ:
            return _in_this_process(args, workshop, environ)
        return subprocess.run(
            [sys.executable, "-m", "speechmeter", *args],
            cwd=workshop,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**os.environ, **environ},
            check=False,
        )

    return call


def _in_this_process(args: Sequence[str], folder: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A command with everything that `main` does; what it changed in this process is changed back."""
    from speechmeter.cli.main import main

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with ExitStack() as kept:
        kept.enter_context(chdir(folder))
        kept.enter_context(_restored())
        kept.enter_context(warnings.catch_warnings())
        kept.enter_context(redirect_stdout(streams[0]))
        kept.enter_context(redirect_stderr(streams[1]))
        sys.argv = ["speechmeter", *map(str, args)]
        os.environ.update(environ)
        try:
            main()
            code: Any = 0
        except SystemExit as ended:
            code = ended.code or 0
        except Exception:
            traceback.print_exc()
            code = 1
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return subprocess.CompletedProcess(sys.argv, int(code), out, err)


@contextmanager
def chdir(folder: Path) -> Iterator[None]:
    """Work in a folder; `contextlib.chdir` came with Python 3.11."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _restored() -> Iterator[None]:
    """Arguments, search path, environment, and modules that came from a file of a test."""
    argv, path, environ, modules = sys.argv, list(sys.path), dict(os.environ), set(sys.modules)
    collecting = gc.isenabled()
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        os.environ.clear()
        os.environ.update(environ)
        if collecting:
            gc.enable()
        for name in set(sys.modules) - modules:
            if tempfile.gettempdir() in (getattr(sys.modules[name], "__file__", None) or ""):
                del sys.modules[name]


PROTOCOL = {
    "clock": "perf_counter_ns",
    "sync": "both edges",
    "seed": 0,
    "mode": "steady",
    "warmup": 1,
    "samples": 3,
    "min_samples": 2,
    "budget_s": 5.0,
}


def protocol_of(changes: Protocol | Mapping[str, Any]) -> Protocol:
    """A protocol as it is, or the usual one with changes; another mode has its own fields alone."""
    if not isinstance(changes, Mapping):
        return changes
    shared = PROTOCOL if "mode" not in changes else {key: PROTOCOL[key] for key in ("clock", "sync", "seed")}
    return protocol_from_json({**shared, **changes})


def make_case(name: str = "fake", **changes: Any) -> Case:
    """A case of a 1-second item; keyword arguments change axes, or `meters`, `protocol`, `workload`, `subject`."""
    axes = {
        "device": "cpu",
        "dtype": "float32",
        "threads": 1,
        "cores": 1,
        "compile": False,
        "deterministic": False,
        "tf32": False,
        "boundary": "+features",
        "seconds": 1.0,
        "batch": 1,
    }
    meters = changes.pop("meters", ("latency",))
    protocol = protocol_of(changes.pop("protocol", {}))
    workload = changes.pop("workload", Spec(plugin="audio", name="noise", source="noise"))
    subject = changes.pop("subject", Spec(plugin="python", name=name, source="fakes.py:nothing"))
    return Case(subject=subject, workload=workload, axes=Axes({**axes, **changes}), meters=meters, protocol=protocol)


def make_record(case: Case, *measurements: Measurement, round: int = 0, sequence: int = 0, **fields: Any) -> Record:
    """A record by hand; status ok unless told."""
    status = fields.pop("status", "ok")
    return Record(case=case, round=round, sequence=sequence, status=status, measurements=measurements, **fields)


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """`command("show", …)`: the command in this process, with everything that `main` does. Quicker than `cli`."""
    from speechmeter.cli.main import main

    def call(*args: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["speechmeter", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Done(code=int(ended.value.code or 0), out=printed.out, err=printed.err)

    return call


@pytest.fixture
def without_pyav(monkeypatch):
    """Sound that libsndfile does not decode is left out by its ending, as where PyAV is not installed."""
    from speechmeter.workloads import compressed

    monkeypatch.setattr(compressed, "is_installed", lambda: False)
