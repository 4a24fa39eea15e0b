"""What is never called in the package, and what is called in one way only: by its syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src/speechmeter"
TREES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
NEVER = (
    "eval", "exec", "os.system", "os.popen", "pickle.load", "pickle.loads", "torch.hub.load", "yaml.unsafe_load",
    "yaml.full_load", "yaml.load_all", "joblib.load", "marshal.loads", "shelve.open", "urllib.request.urlopen",
    "requests.get",
)  # fmt: skip


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield file, ast.unparse(node.func), node


def keyword(call: ast.Call, name: str):
    found = next((one.value for one in call.keywords if one.arg == name), None)
    return found.value if isinstance(found, ast.Constant) else found


def test_weights_are_loaded_as_weights_only():
    found = [(file, keyword(call, "weights_only")) for file, name, call in calls() if name.endswith("torch.load")]
    assert len(found) == 2
    assert all(only is True for _, only in found), found


def test_remote_code_is_off_wherever_a_model_is_named():
    asked = [
        keyword(c, "trust_remote_code") for _, _, c in calls() if any(k.arg == "trust_remote_code" for k in c.keywords)
    ]
    automatic = [
        (file, keyword(call, "trust_remote_code"))
        for file, name, call in calls()
        if "transformers.Auto" in name and name.endswith("from_pretrained")
    ]
    assert len(automatic) == 3
    assert all(value is False for value in [*asked, *(value for _, value in automatic)])


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


@pytest.mark.parametrize("name", NEVER)
def test_it_is_never_called(name):
    assert [file for file, called, _ in calls() if called == name] == []


def test_yaml_is_loaded_with_a_safe_loader():
    found = [ast.unparse(call) for _, name, call in calls() if name == "yaml.load"]
    assert found == ["yaml.load(text, Loader=loader)"]
    from speechmeter.plan.foreign.tags import TagKeeper
    from speechmeter.plan.source import parse_plan

    assert parse_plan.__kwdefaults__["loader"].__name__ == "SafeLoader"
    assert "SafeLoader" in {base.__name__ for base in TagKeeper.__mro__}


def test_no_command_goes_through_a_shell_and_no_array_through_a_pickle():
    assert [file for file, _, call in calls() if keyword(call, "shell") is True] == []
    loads = [keyword(call, "allow_pickle") for _, name, call in calls() if name in ("np.load", "numpy.load")]
    assert all(value in (None, False) for value in loads)


def test_commands_print_through_the_one_way_that_makes_text_safe():
    printing = {file for file, name, _ in calls() if name in ("typer.echo", "click.echo", "print", "rich.print")}
    assert {file for file in printing if file.startswith("cli/")} == {"cli/printing.py"}


def test_files_are_written_under_names_that_nobody_could_foresee():
    parts = [
        ast.unparse(call) for _, name, call in calls() if name.endswith("with_name") and ".part" in ast.unparse(call)
    ]
    assert parts == []
