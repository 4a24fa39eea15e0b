"""Two commits of a repository made ready to be measured: their files, their environments, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import make_case

from speechmeter.core.commit_files import REPOSITORY, TREE, as_at_commit, at_commit, commit_facts
from speechmeter.core.errors import InputError
from speechmeter.core.types import BASELINE, Spec
from speechmeter.launch import commits as module
from speechmeter.launch.commits import check_at_commits, commits
from speechmeter.launch.executors import THIS
from speechmeter.subjects.python import load_factory


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """`commit(**files)` commits files in the working folder; the cache is in a folder of the test."""
    top = tmp_path / "project"
    top.mkdir()
    monkeypatch.chdir(top)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as inside a hook of another repository

    def git(*words):
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
        environ = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(tmp_path)}
        subprocess.run(["git", *identity, *words], cwd=top, env=environ, check=True, capture_output=True)

    def commit(tag, **files):
        for name, text in files.items():
            (top / name.replace("_py", ".py").replace("_toml", ".toml")).write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", f"the {tag} one")
        git("tag", tag)

    git("init", "-q")
    return commit


MODEL = "from {part} import NUMBER\n\ndef make():\n    return lambda samples: NUMBER\n"


def two(repository, part="part_of_a_commit"):
    repository("old", model_py=MODEL.format(part=part), **{f"{part}_py": "NUMBER = 1\n"})
    repository("new", **{f"{part}_py": "NUMBER = 2\n"})


def test_each_commit_has_its_files_and_this_interpreter_where_nothing_is_installed(repository):
    two(repository)
    found = commits(["old", "new"])
    assert list(found) == [BASELINE, THIS]
    numbers = [(one.folder / "tree/part_of_a_commit.py").read_text() for one in found.values()]
    assert numbers == ["NUMBER = 1\n", "NUMBER = 2\n"]
    assert [one.interpreter.python for one in found.values()] == [sys.executable] * 2
    assert [one.subject for one in found.values()] == ["the old one", "the new one"]


def test_they_are_used_again_and_made_again_where_somebody_changed_them(repository):
    two(repository)
    lines = []
    tree = commits(["old", "new"], lines.append)[THIS].folder / "tree"
    assert len(lines) == 2
    commits(["old", "new"], lines.append)
    assert len(lines) == 2
    (tree / "part_of_a_commit.py").write_text("NUMBER = 3\n")
    commits(["old", "new"], lines.append)
    assert len(lines) == 3
    assert (tree / "part_of_a_commit.py").read_text() == "NUMBER = 2\n"


def test_a_factory_of_a_file_is_that_of_the_commit_with_what_it_imports(repository):
    two(repository, part="other_part_of_a_commit")
    found = commits(["old", "new"])
    case = make_case(subject=Spec(plugin="python", name="m", source="model.py:make"))
    Path("model.py").unlink()  # whatever the working directory has
    for side, number in ((BASELINE, 1), (THIS, 2)):
        with as_at_commit(found[side].interpreter.environ):
            assert load_factory(case)()(None) == number
            assert commit_facts() == {"git": found[side].short}
        for name in ("model", "other_part_of_a_commit"):
            del sys.modules[name]
        sys.path[:] = [entry for entry in sys.path if entry != str(found[side].folder / "tree")]
    assert commit_facts() == {}


def test_a_path_outside_the_repository_stays(repository, tmp_path):
    with as_at_commit({REPOSITORY: str(Path.cwd()), TREE: "/tree"}):
        assert at_commit(Path("a/b.py")) == Path("/tree/a/b.py")
        assert at_commit(tmp_path / "c.py") == tmp_path / "c.py"
    assert at_commit(Path("a/b.py")) == Path("a/b.py")


def test_a_model_that_one_commit_lacks_is_refused_with_that_commit(repository):
    repository("old", readme_py="")
    repository("new", model_py=MODEL.format(part="x"))
    found = commits(["old", "new"])
    case = make_case(subject=Spec(plugin="python", name="m", source="model.py:make"))
    with pytest.raises(InputError, match=rf"at commit {found[BASELINE].short} \(old\): there is no file 'model.py'"):
        check_at_commits([case], found)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["old", "gone"], "there is no commit 'gone'"),
        (["old", "--help"], "there is no commit '--help'"),
        (["old", "old"], "old and old are the same commit"),
    ],
)
def test_what_cannot_be_compared_is_refused(repository, names, reason):
    two(repository)
    with pytest.raises(InputError, match=reason):
        commits(names)


def test_outside_a_repository_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(InputError, match="is not in a git repository"):
        commits(["a", "b"])


def test_changes_that_are_not_committed_are_told(repository):
    two(repository)
    Path("model.py").write_text("changed")
    lines = []
    commits(["old", "new"], lines.append)
    assert lines[0] == "the working directory has changes that are not committed: they are not measured"


PROJECT = '[project]\nname = "p"\nversion = "1"\n'


def test_a_project_is_installed_over_the_packages_of_this_environment(repository, monkeypatch):
    repository("old", pyproject_toml=PROJECT)
    repository("new", part_py="")
    done = []

    def succeed(command, tree, commit):
        done.append(command)
        if "venv" in command:
            pure = Path(command[-1], "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
            pure.mkdir(parents=True)
            Path(command[-1], "bin").mkdir()
            Path(command[-1], "bin/python").touch()

    monkeypatch.setattr(module, "_succeed", succeed)
    monkeypatch.setattr(sys, "path", ["", str(Path.cwd()), str(Path(pytest.__file__).parents[1])])
    lines = []
    old = commits(["old", "new"], lines.append)[BASELINE]
    assert len(done) == 4
    assert done[1][:5] == [sys.executable, "-m", "pip", "--python", old.interpreter.python]
    assert done[1][-1] == str(old.folder / "tree")
    (packages,) = (old.folder / "env").rglob("*.pth")
    assert packages.read_text().splitlines() == [str(Path(pytest.__file__).resolve().parents[1])]
    commits(["old", "new"], lines.append)
    assert len(done) == 4
    monkeypatch.setattr(sys, "prefix", "/another/environment")
    commits(["old", "new"], lines.append)
    assert len(done) == 8


def test_a_commit_that_cannot_be_installed_says_why(repository, monkeypatch):
    repository("old", pyproject_toml=PROJECT)
    repository("new", part_py="")
    run = module._run

    def refuse(command, folder, time_s):
        if command[0] != sys.executable:
            return run(command, folder, time_s)
        return subprocess.CompletedProcess(
            command, 1, "", "working\nERROR: no matching distribution\nnotice: new pip\n"
        )

    monkeypatch.setattr(module, "_run", refuse)
    with pytest.raises(InputError, match=r"cannot be installed: ERROR: no matching distribution; .*pip install"):
        commits(["old", "new"])
