"""How large the package is, and how much of it one measurement passes.

Prints files, lines, the median and the longest file and function, private functions that are called once, imports
inside functions that close a cycle, importers of the busiest modules, comment lines, and the files and functions that
`speechmeter run --model log-mel --seconds 1 --batch 1` passes in all its processes. Times nothing.

    python benchmarks/rooms.py [SRC]            # SRC is a `src` folder, by default the one beside this script
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

RUN = ("run", "--model", "log-mel", "--seconds", "1", "--batch", "1")
TRACER = """
import os, sys, threading
from pathlib import Path

root, out, seen = os.environ["ROOMS_ROOT"], os.environ["ROOMS_OUT"], set()


def note(frame, event, arg):
    code = frame.f_code
    if event == "call" and code not in seen:
        seen.add(code)
        if code.co_filename.startswith(root) and not code.co_name.startswith("<"):
            with Path(out, str(os.getpid())).open("a") as file:
                file.write(f"{code.co_filename}\\t{getattr(code, 'co_qualname', code.co_name)}\\n")


sys.setprofile(note)
threading.setprofile(note)
"""
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """A file of the package."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def modules_of(package: Path) -> list[Module]:
    made = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        text = path.read_text()
        name = ".".join(parts).removesuffix(".__init__")
        made.append(Module(name=name, path=path, text=text, tree=ast.parse(text)))
    return made


def called_once(modules: list[Module]) -> tuple[int, int]:
    """Private functions at the top level of a file, and those of them whose name is used once in it."""
    total = once = 0
    for module in modules:
        used = Counter(node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name))
        names = [node.name for node in module.tree.body if isinstance(node, FUNCTIONS) and node.name.startswith("_")]
        total += len(names)
        once += sum(used[name] == 1 for name in names)
    return total, once


def imports_of(module: Module, known: set[str], *, inside: bool) -> set[str]:
    """The modules of the package that a file imports, at its top level or inside its functions."""
    found = set()
    nodes = list(_inner(module.tree) if inside else _outer(module.tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {full if (full := f"{node.module}.{alias.name}") in known else node.module for alias in node.names}
    return found & known - {module.name}


def _outer(tree: ast.AST) -> list[ast.AST]:
    """Statements that run when the file is imported."""
    found: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            continue
        found += [node, *_outer(node)]
    return found


def _inner(tree: ast.AST) -> list[ast.AST]:
    """Statements that run when a function is called."""
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    return [node for function in functions for node in ast.walk(function)]


def closing_a_cycle(modules: list[Module]) -> list[str]:
    """Imports inside functions of a module from which the importing file is reached by imports at the top level."""
    known = {module.name for module in modules}
    top = {module.name: imports_of(module, known, inside=False) for module in modules}

    def reached(start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += top[name]
        return seen

    found = []
    for module in modules:
        inner = sorted(imports_of(module, known, inside=True))
        found += [f"{module.name} → {name}" for name in inner if module.name in reached(name)]
    return found


def importers(modules: list[Module]) -> list[tuple[str, int]]:
    known = {module.name for module in modules}
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for inside in (False, True):
            for name in imports_of(module, known, inside=inside):
                found[name].add(module.name)
    return sorted(((name, len(who)) for name, who in found.items()), key=lambda pair: -pair[1])


def passed(source: Path) -> tuple[int, int]:
    """Files and functions of ours that a measurement calls, in all its processes."""
    with tempfile.TemporaryDirectory() as folder:
        hook, out = Path(folder, "hook"), Path(folder, "out")
        hook.mkdir()
        out.mkdir()
        (hook / "sitecustomize.py").write_text(TRACER)
        environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(hook), str(source)]),
            "ROOMS_ROOT": str(source / "speechmeter"),
            "ROOMS_OUT": str(out),
        }
        command = [sys.executable, "-m", "speechmeter", *RUN, "-o", str(Path(folder, "run"))]
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        lines = {line for file in out.iterdir() for line in file.read_text().splitlines()}
    return len({line.partition("\t")[0] for line in lines}), len(lines)


def main() -> None:
    source = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "src").resolve()
    modules = modules_of(source / "speechmeter")
    sizes = sorted((module.lines, module.name) for module in modules)
    functions = sorted(
        (node.end_lineno - node.lineno + 1, f"{module.name}.{node.name}")
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, FUNCTIONS) and node.end_lineno is not None
    )
    private, once = called_once(modules)
    count = importers(modules)
    cycles = closing_a_cycle(modules)
    comments = sum(line.strip().startswith("#") for module in modules for line in module.text.splitlines())
    files_passed, functions_passed = passed(source)
    rows = {
        "files": len(modules),
        "lines": sum(size for size, _ in sizes),
        "file: median, longest": f"{median(size for size, _ in sizes):g}, {sizes[-1][0]} ({sizes[-1][1]})",
        "files under 40 lines": sum(size < 40 for size, _ in sizes),
        "files with one importer": sum(number == 1 for _, number in count),
        "function: median": f"{median(size for size, _ in functions):g}",
        "function: longest": f"{functions[-1][0]} ({functions[-1][1]})",
        "functions": len(functions),
        "private module functions": private,
        "of these called once": once,
        "imports in functions that close a cycle": f"{len(cycles)} {'; '.join(cycles[:5])}",
        "importers of the busiest": ", ".join(f"{name} {number}" for name, number in count[:5]),
        "comment lines": comments,
        "files that a measurement passes": files_passed,
        "functions that a measurement passes": functions_passed,
    }
    for name, value in rows.items():
        print(f"{name:42} {value}")


if __name__ == "__main__":
    main()
