"""The commit of a run, from repositories whose configuration names programs: none of them is started."""

import os
import shutil
import subprocess

import pytest

from speechmeter.launch.git_state import git_state

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *words):
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    environ = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *words], cwd=folder, check=True, capture_output=True, text=True,
        env=environ,
    ).stdout.strip()  # fmt: skip


def new_repository(path):
    path.mkdir()
    git(path, "init", "-q")
    (path / "a.txt").write_text("one\n")
    (path / "b.bin").write_text("two\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "first")
    return path


@pytest.fixture
def repository(tmp_path):
    return new_repository(tmp_path / "repository")


def plant(repository, mark):
    """Every program that a configuration may name and a look at the files may start; each leaves a mark."""
    program = repository / ".git" / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $@\" >> '{mark}'\nexit 1\n")
    program.chmod(0o755)
    names = ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy",
             "diff.external", "diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.smudge",
             "filter.x.process", "gpg.program", "credential.helper", "pager.diff-index", "core.alternateRefsCommand",
             "remote.origin.uploadpack", "alias.diff-index", "alias.rev-parse")  # fmt: skip
    for name in names:
        git(repository, "config", name, str(program))
    git(repository, "config", "filter.x.required", "true")
    git(repository, "config", "core.hooksPath", str(repository / ".git" / "planted"))
    (repository / ".git" / "planted").mkdir()
    for folder in ("hooks", "planted"):
        for hook in ("post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout", "reference-transaction"):
            (repository / ".git" / folder).mkdir(exist_ok=True)
            shutil.copy(program, repository / ".git" / folder / hook)
    (repository / ".gitattributes").write_text("* filter=x diff=x\n")


def touch(repository):
    """Files that git has to read again: the times are others, the content is the same."""
    for name in ("a.txt", "b.bin"):
        os.utime(repository / name, (1, 1))


def test_the_commit_and_whether_files_were_changed(repository):
    commit = git(repository, "rev-parse", "HEAD")[:12]
    assert git_state(repository) == commit
    touch(repository)
    assert git_state(repository) == commit
    (repository / "untracked").write_text("x")
    assert git_state(repository) == commit
    (repository / "a.txt").write_text("other\n")
    assert git_state(repository) == f"{commit}-dirty"
    git(repository, "add", "a.txt")
    assert git_state(repository) == f"{commit}-dirty"
    git(repository, "commit", "-qm", "second")
    assert git_state(repository) == git(repository, "rev-parse", "HEAD")[:12] != commit


@pytest.mark.parametrize("changed", [False, True])
def test_no_program_that_a_repository_names_is_started(repository, tmp_path, changed):
    commit = git(repository, "rev-parse", "HEAD")[:12]
    mark = tmp_path / "started"
    plant(repository, mark)
    touch(repository)
    if changed:
        (repository / "a.txt").write_text("other\n")
    before = (repository / ".git" / "index").read_bytes()
    assert git_state(repository) == (f"{commit}-dirty" if changed else commit)
    assert not mark.exists(), mark.read_text()
    assert (repository / ".git" / "index").read_bytes() == before
    # the trap does work: what was asked before starts the programs
    subprocess.run(["git", "describe", "--always", "--dirty"], cwd=repository, capture_output=True, check=False)
    assert mark.exists()


def test_no_program_that_a_submodule_names_is_started(repository, tmp_path):
    other, mark = new_repository(tmp_path / "other"), tmp_path / "started"
    git(repository, "submodule", "add", "-q", str(other), "inner")
    git(repository, "commit", "-qm", "second")
    inner = repository / "inner"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\nexit 1\n")
    program.chmod(0o755)
    git(inner, "config", "core.fsmonitor", str(program))
    os.utime(inner / "a.txt", (1, 1))
    mark.unlink(missing_ok=True)
    assert git_state(repository) == git(repository, "rev-parse", "HEAD")[:12]
    assert git_state(inner) == git(other, "rev-parse", "HEAD")[:12]
    assert not mark.exists()
    subprocess.run(["git", "describe", "--always", "--dirty"], cwd=repository, capture_output=True, check=False)
    assert mark.exists()


def test_a_missing_object_is_not_fetched(repository, tmp_path):
    mark = tmp_path / "started"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\nexit 1\n")
    program.chmod(0o755)
    for name, value in (("extensions.partialClone", "origin"), ("core.repositoryFormatVersion", "1"),
                        ("remote.origin.url", f"ext::{program}"), ("remote.origin.promisor", "true"),
                        ("protocol.ext.allow", "always")):  # fmt: skip
        git(repository, "config", name, value)
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    (repository / ".git/objects" / tree[:2] / tree[2:]).unlink()
    assert git_state(repository) == ""
    assert not mark.exists()


def test_a_linked_worktree_has_its_own_commit(repository, tmp_path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    (tmp_path / "linked" / "a.txt").write_text("x\n")
    git(tmp_path / "linked", "commit", "-qam", "second")
    commit = git(tmp_path / "linked", "rev-parse", "HEAD")[:12]
    assert git_state(tmp_path / "linked") == commit != git_state(repository)


def test_a_folder_below_is_of_the_repository(repository):
    (repository / "below").mkdir()
    assert git_state(repository / "below") == git_state(repository) != ""


def test_files_on_a_disk_without_modes_are_not_dirty(repository):
    git(repository, "config", "core.fileMode", "false")
    (repository / "a.txt").chmod(0o755)
    assert git_state(repository) == git(repository, "rev-parse", "HEAD")[:12]


def test_hashes_of_the_other_kind_are_known(tmp_path):
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "-q", "--object-format=sha256")
    (tmp_path / "new" / "a").write_text("x")
    git(tmp_path / "new", "add", ".")
    git(tmp_path / "new", "commit", "-qm", "first")
    assert git_state(tmp_path / "new") == git(tmp_path / "new", "rev-parse", "HEAD")[:12]


def test_outside_a_repository_or_before_the_first_commit_it_is_empty(tmp_path, monkeypatch):
    assert git_state(tmp_path) == ""
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) == ""


def test_a_program_called_git_in_the_working_directory_is_not_started(repository, tmp_path, monkeypatch):
    (repository / "git").write_text(f"#!/bin/sh\ntouch '{tmp_path / 'started'}'\n")
    (repository / "git").chmod(0o755)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PATH", ".")
    assert git_state() == ""
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("text", [b"gitdir: /nowhere", b"nonsense", b"\xff\xfe", b""])
def test_a_file_that_points_nowhere_is_no_repository(tmp_path, text):
    (tmp_path / ".git").write_bytes(text)
    assert git_state(tmp_path) == ""


def test_a_change_of_the_same_size_in_the_tick_of_the_commit_is_seen(repository):
    """What git calls racy: only the time of the index tells that a file may have changed after it was added."""
    index, file = repository / ".git" / "index", repository / "a.txt"
    tick = file.stat().st_mtime_ns
    file.write_text("two\n")  # as long as before
    os.utime(file, ns=(tick, tick))
    os.utime(index, ns=(tick, tick))
    assert git_state(repository).endswith("-dirty")
