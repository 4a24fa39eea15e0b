"""A user's own model: `python:package.module:factory` or `python:path/file.py:factory`.

The factory takes no argument and returns something that takes a float32 tensor (batch, samples) at 16 kHz: a module or
any callable. It may also return a `Prepared` chain of stages, which is then measured as it is. For a live case it
returns a generator function that takes an iterator of chunks (float32 at 16 kHz) and yields texts, or a `Live`. A
synthesiser gets an iterator of pieces of text instead, and yields `Speech`, or (samples, rate).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import reprlib
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from numbers import Integral
from pathlib import Path
from types import ModuleType
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.axes import OFFLINE, Axis, Option
from speechmeter.core.commit_files import at_commit, measures_commit
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Live
from speechmeter.core.plugins import nearest
from speechmeter.core.protocols import TEXT, Installed, Prepared
from speechmeter.core.types import BASELINE, VARIANT, Batch, Case, Speech, Stage
from speechmeter.subjects.common import waves
from speechmeter.subjects.live.hearing import Heard, Hearing

_FORM = "write python:package.module:factory or python:path/file.py:factory"


class PythonSubject:
    """`python:…:factory`: any callable or module."""

    summary = "your own callable or module: python:path/file.py:factory"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = ()
    runs_code = True
    takes: tuple[str, ...] = ()

    def installed(self) -> Installed:
        """Always installed."""
        return Installed(version=f"Python {sys.version.split()[0]}")

    def check(self, case: Case) -> None:
        """File and factory must exist; the code is read, not run."""
        check_source(case.subject.source)

    def unavailable(self, case: Case) -> str | None:
        """Unknown before it runs."""
        return None

    def not_live(self, case: Case) -> str | None:
        """Unknown before it runs."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Import the module, call the factory, wrap what it returns."""
        made = load_factory(case)()
        if isinstance(made, Prepared):
            return made
        if case.live is not None and case.axes.pace != OFFLINE:
            return _live(made, case)
        if _is_generator(made) and "chunks" in _parameters(made):
            return _whole(made)
        if not callable(made):
            factory = case.subject.source.rpartition(":")[2]
            raise TypeError(f"{factory}() returned {type(made).__name__}, which cannot be called")
        return prepare_callable(made, case, device)


def _live(made: Any, case: Case) -> Prepared:
    """A system that is spoken to: a `Live`, a function that makes a conversation, or a generator of texts."""
    if isinstance(made, Live):
        return Prepared(live=made)
    speaks = plugins.fed_by(case).kinds == (TEXT,)
    if _is_generator(made):
        say = _speak if speaks else _hear
        live = Live(
            converse=lambda clock: Hearing(clock, lambda chunks: say(made(chunks))),
            speaks=speaks,
            texts=not speaks,
            interrupts=speaks,
        )
        return Prepared(live=live)
    if callable(made) and "clock" in _parameters(made):
        return Prepared(live=Live(converse=made))
    factory = case.subject.source.rpartition(":")[2]
    takes, yields = ("pieces of text", "(samples, rate)") if speaks else ("chunks", "texts")
    raise TypeError(
        f"{factory}() returned {type(made).__name__}, which cannot be measured live; return a generator function that "
        f"takes an iterator of {takes} and yields {yields}, a function converse(clock), or speechmeter.core.live.Live"
    )


def _is_generator(made: Any) -> bool:
    return inspect.isgeneratorfunction(made) or inspect.isgeneratorfunction(vars(type(made)).get("__call__"))


def _whole(listen: Callable[[Iterator[Any]], Iterator[Any]]) -> Prepared:
    """A live generator fed whole recordings, as the offline partner of a live case: each is a single chunk."""

    def recognise(batch: Batch) -> list[str]:
        heard = [list(_hear(listen(iter([wave])))) for wave in waves(batch)]
        return [" ".join(one.text for one in said if one.kind == "final" and one.text) for said in heard]

    return Prepared(
        stages=(Stage(name="model", fn=recognise),),
        notes=("whole recordings: the generator gets each as one chunk",),
        data_dependent=True,
    )


def _parameters(made: Callable[..., Any]) -> Sequence[str]:
    try:
        return list(inspect.signature(made).parameters)
    except (TypeError, ValueError):  # of a builtin
        return ()


def _hear(said: Iterator[Any]) -> Iterator[Heard]:
    """A text is a partial result, (text, True) a final one that ends its segment. The last text is final."""
    segment, text = 0, ""
    for found in said:
        pair = found if isinstance(found, tuple) else (found, False)
        if len(pair) != 2 or not isinstance(pair[0], str) or pair[1] not in (True, False):
            raise TypeError(f"a live model yields a text or (text, True), not {reprlib.repr(found)}")
        text, is_final = pair
        yield Heard(kind="final" if is_final else "partial", text=text, segment=segment)
        if is_final:
            segment, text = segment + 1, ""
    if text or not segment:
        yield Heard(kind="final", text=text, segment=segment)


def _speak(said: Iterator[Any]) -> Iterator[Heard]:
    """Pieces of sound, each `Speech` or (samples, rate). Copied: read later, while a buffer may be used again."""
    import numpy as np

    for found in said:
        sound = found if isinstance(found, Speech) else None
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Integral):
            sound = Speech(samples=found[0], rate=int(found[1]))
        if sound is None:
            kind = (
                f"({', '.join(type(one).__name__ for one in found)})"
                if isinstance(found, tuple)
                else type(found).__name__
            )
            raise TypeError(
                f"a live synthesiser yields Speech or (samples, rate), rate being a whole number, not {kind}"
            )
        yield Heard(kind="audio", sound=Speech(samples=np.array(sound.samples), rate=sound.rate))


def check_source(source: str) -> None:
    """Raise SubjectError unless `path/file.py:factory` or `package.module:factory` exists; nothing of it is run."""
    location, factory = _split(source)
    text = _source_text(location)
    if text is None:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise SubjectError(
            f"not valid Python: {getattr(error, 'msg', error)}",
            where=f"{location}:{line}" if line else location,
            fix="correct the file",
        ) from error
    names, open_ended = _top_level_names(tree)
    if factory not in names and not open_ended:
        raise SubjectError(f"{location} has no {factory!r} at its top level", fix=nearest(factory, sorted(names)))


def load_factory(case: Case) -> Callable[..., Any]:
    """Import the module and return the factory that the case's subject names."""
    location, factory = _split(case.subject.source)
    installed_first = measures_commit() or case.axes.get(VARIANT) == BASELINE
    found: Callable[..., Any] = getattr(_import(location, installed_first=installed_first), factory)
    return found


def prepare_callable(made: Callable[..., Any], case: Case, device: str) -> Prepared:
    """A chain for a module or a callable. Without torch a callable gets the float32 array itself."""
    if find_spec("torch") is None:
        return Prepared(stages=(Stage(name="model", fn=lambda batch: made(batch.data)),))
    import torch

    from speechmeter.subjects import torch_runtime as runtime

    dtype = runtime.configure(case)
    modules: dict[str, Any] = {}
    call: Callable[..., Any] = made
    if isinstance(made, torch.nn.Module):
        made = made.eval().to(device=device, dtype=dtype)
        modules = {type(made).__name__: made}
        call = runtime.inference(runtime.compiled(made, case))
    elif case.axes.compile:
        call = runtime.compiled(made, case)

    def copy(batch: Batch) -> Any:
        return torch.from_numpy(batch.data).to(device=device, dtype=dtype)

    return Prepared(
        stages=(Stage(name="copy", fn=copy), Stage(name="model", fn=call, modules=modules)),
        modules=modules,
        sync=runtime.sync_for(device),
    )


def _split(source: str) -> tuple[str, str]:
    location, colon, factory = source.rpartition(":")
    if not colon or not location or not factory.isidentifier():
        raise SubjectError(f"python:{source} does not name a factory", fix=_FORM)
    return location, factory


def _is_file(location: str) -> bool:
    return location.endswith(".py") or "/" in location


def _source_text(location: str) -> str | None:
    """The module's source; None when it has none to read. Raises SubjectError when there is no such module."""
    if _is_file(location):
        path = at_commit(Path(location))
        if not path.is_file():
            raise SubjectError(f"there is no file {location!r}", fix=_FORM)
    else:
        found = _find_module(location)
        if found is None:
            raise SubjectError(f"there is no module {location!r}", fix=_FORM)
        path = Path(found)
        if path.suffix != ".py":
            return None
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SubjectError(f"{location!r} cannot be read as Python: {error}", fix="use a .py file") from error


def _find_module(dotted: str) -> str | None:
    """The file of a module, looked up level by level without importing any parent."""
    here = at_commit(Path.cwd())
    search: list[str] | None = [str(here), *([str(here / "src")] if measures_commit() else []), *sys.path]
    origin: str | None = None
    for depth, part in enumerate(dotted.split(".")):
        name = ".".join(dotted.split(".")[: depth + 1])
        spec = PathFinder.find_spec(name if depth == 0 else part, search) if search else None
        if spec is None:
            return None
        origin = spec.origin
        search = list(spec.submodule_search_locations) if spec.submodule_search_locations else None
    return origin or (search[0] if search else None)


def _top_level_names(tree: ast.Module) -> tuple[set[str], bool]:
    """Names bound at the top level, and whether there may be more (a star import, a branch, a module `__getattr__`)."""
    names: set[str] = set()
    open_ended = False
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
            open_ended |= node.name == "__getattr__"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            open_ended |= "*" in bound
            names |= bound
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        elif not isinstance(node, ast.Expr):
            open_ended = True
    return names, open_ended


def _import(location: str, *, installed_first: bool) -> ModuleType:
    if not _is_file(location):
        _add_to_path(at_commit(Path.cwd()), installed_first)
        return importlib.import_module(location)
    path = at_commit(Path(location)).resolve()
    _add_to_path(path.parent, installed_first)
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{location} cannot be imported")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _add_to_path(folder: Path, installed_first: bool) -> None:
    """Let modules of a folder be imported, before all others, or only where nothing of that name is installed.

    The interpreter that measures a baseline must not find this version of the code in the working folder.
    """
    if not installed_first:
        sys.path.insert(0, str(folder))
        return
    local = [entry for entry in sys.path if entry in ("", str(Path.cwd()), str(folder))]
    sys.path[:] = [entry for entry in sys.path if entry not in local] + [str(folder), *local]
