"""Devices are values of the type `Device`: nothing in the package asks a text what kind of device it names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src/speechmeter"
OWN = "core/device.py"
APART = "transducer/"
"""The losses import nothing else of Speechmeter, and their devices are torch's own."""
TREES = {
    file: ast.parse(path.read_text())
    for path in sorted(PACKAGE.rglob("*.py"))
    if (file := path.relative_to(PACKAGE).as_posix()) != OWN and not file.startswith(APART)
}


def device_texts(node: ast.AST) -> bool:
    """Whether a literal `cpu`, `cuda` or `cuda:…` is in a node."""
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return any(text in ("cpu", "cuda") or text.startswith("cuda:") for text in texts)


def about_a_device(node: ast.AST) -> bool:
    return "device" in ast.unparse(node)


def of_torch(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "type"


def asks_a_text(node: ast.AST) -> bool:
    """Whether an expression finds out from a text what kind of device it names, or which number it has."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        name, text = node.func.attr, node.func.value
        begins = [one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)]
        if name in ("startswith", "removeprefix"):
            return any(str(b).startswith("cuda") or (b == "cpu" and about_a_device(text)) for b in begins)
        return name in ("split", "partition", "rpartition", "rsplit") and ":" in begins and about_a_device(text)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(isinstance(one, ast.In | ast.NotIn) for one in node.ops):
            return any(map(device_texts, sides)) and any(map(about_a_device, sides))
        return any(map(device_texts, sides)) and not any(map(of_torch, sides))
    return False


def found(tree: ast.AST) -> Iterator[str]:
    return (ast.unparse(node) for node in ast.walk(tree) if asks_a_text(node))


def test_no_text_is_asked_which_device_it_names():
    assert {file: texts for file, tree in TREES.items() if (texts := list(found(tree)))} == {}


@pytest.mark.parametrize(
    "code",
    [
        'device.startswith("cuda")',
        'str(case.axes.get("device", "")).startswith("cuda:")',
        'name.startswith(("cuda", "mps"))',
        'device.startswith("cpu")',
        'case.axes["device"] == "cpu"',
        '"cuda" != device',
        '(wanted, device) == ("float32", "cpu")',
        'kind != "cuda"',
        '"cuda" in device',
        'device in ("cpu", "cuda")',
        'device.partition(":")[0]',
        'str(axes["device"]).split(":")',
        'device.removeprefix("cuda:")',
    ],
)
def test_such_an_expression_is_found(code):
    assert list(found(ast.parse(f"if {code}: pass")))


@pytest.mark.parametrize(
    "code",
    [
        "case.device.is_cuda",
        'tensor.device.type == "cuda"',
        '"cuda" in metric.id',
        'name.startswith("cpu")',
        'load.partition(":")',
    ],
)
def test_other_expressions_are_not(code):
    assert not list(found(ast.parse(f"if {code}: pass")))
