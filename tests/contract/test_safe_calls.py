"""What is never called in the package, and what is called in one way only: by its syntax trees."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src/speechmeter"
TREES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
NEVER = (
    "eval", "exec", "os.system", "os.popen", "pickle.load", "pickle.loads", "torch.hub.load", "yaml.unsafe_load",
    "yaml.full_load", "yaml.load_all", "joblib.load", "marshal.loads", "shelve.open", "urllib.request.urlopen",
    "requests.get",
)  # fmt: skip


def names_of(tree: ast.AST) -> dict[str, str]:
    """The full names behind the names that a file imports: `t` is `torch` after `import torch as t`."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def calls(trees: Mapping[str, ast.AST] = TREES) -> Iterator[tuple[str, str, ast.Call]]:
    """(file, full name, call) of every call."""
    for file, tree in trees.items():
        names = names_of(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                first, dot, rest = ast.unparse(node.func).partition(".")
                yield file, f"{names.get(first, first)}{dot}{rest}", node


def keyword(call: ast.Call, name: str):
    found = next((one.value for one in call.keywords if one.arg == name), None)
    return found.value if isinstance(found, ast.Constant) else found


def unsafe(trees: Mapping[str, ast.AST]) -> Iterator[tuple[str, str]]:
    """(file, what) of every call that could run code which a file of a stranger brings."""
    for file, name, call in calls(trees):
        if name in NEVER:
            yield file, f"{name} is called"
        if name.endswith("torch.load") and keyword(call, "weights_only") is not True:
            yield file, "torch.load without weights_only=True"
        if name.startswith("transformers.") and name.endswith(".from_pretrained"):
            of_a_class_of_theirs = "transformers.Auto" not in name
            if keyword(call, "trust_remote_code") is not False and not of_a_class_of_theirs:
                yield file, "from_pretrained without trust_remote_code=False"
        if any(one.arg == "trust_remote_code" and keyword(call, one.arg) is not False for one in call.keywords):
            yield file, "trust_remote_code"
        if name in ("np.load", "numpy.load") and keyword(call, "allow_pickle") not in (None, False):
            yield file, "numpy.load with a pickle"
        if keyword(call, "shell") is True:
            yield file, "a shell"


def test_no_call_of_the_package_runs_code_that_a_file_brings():
    assert list(unsafe(TREES)) == []


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ntorch.load(path)",
        "import torch as t\nt.load(path, weights_only=False)",
        "from torch import load\nload(path)",
        "import transformers\ntransformers.AutoModel.from_pretrained(name)",
        "from transformers import AutoModel as A\nA.from_pretrained(name, trust_remote_code=trusted)",
        "build(name, trust_remote_code=True)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import subprocess\nsubprocess.run(words, shell=True)",
        "from os import system\nsystem(words)",
        "import pickle as p\np.loads(data)",
        *(f"{name}(x)" for name in NEVER),
    ],
)
def test_an_unsafe_call_is_found(code):
    assert list(unsafe({"planted.py": ast.parse(code)})), code


def test_weights_are_loaded_as_weights_only():
    loads = {file for file, name, _ in calls() if name.endswith("torch.load")}
    assert loads == {"workloads/shapes/file.py", "workloads/manifests/pickled.py"}


def test_remote_code_is_off_wherever_a_model_is_named():
    automatic = {name.partition("transformers.")[2] for _, name, _ in calls() if "transformers.Auto" in name}
    assert {f"Auto{one}.from_pretrained" for one in ("Config", "FeatureExtractor", "Tokenizer")} <= automatic


def test_hyperpyyaml_is_imported_by_the_speechbrain_adapter_alone_which_needs_trust():
    importers = {
        file
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hyperpyyaml"))
        or (isinstance(node, ast.Import) and any(alias.name.startswith("hyperpyyaml") for alias in node.names))
    }
    assert importers == {"subjects/speechbrain/loading.py"}
    from speechmeter.subjects.speechbrain import SpeechBrainSubject

    assert SpeechBrainSubject.runs_code


def test_yaml_is_loaded_with_a_safe_loader():
    found = [ast.unparse(call) for _, name, call in calls() if name == "yaml.load"]
    assert found == ["yaml.load(text, Loader=loader)"]
    from speechmeter.plan.foreign.tags import TagKeeper
    from speechmeter.plan.source import parse_plan

    assert parse_plan.__kwdefaults__["loader"].__name__ == "SafeLoader"
    assert "SafeLoader" in {base.__name__ for base in TagKeeper.__mro__}


def test_commands_print_through_the_one_way_that_makes_text_safe():
    printing = {file for file, name, _ in calls() if name in ("typer.echo", "click.echo", "print", "rich.print")}
    assert {file for file in printing if file.startswith("cli/")} == {"cli/printing.py"}


def test_files_are_written_under_names_that_nobody_could_foresee():
    parts = [
        ast.unparse(call) for _, name, call in calls() if name.endswith("with_name") and ".part" in ast.unparse(call)
    ]
    assert parts == []
