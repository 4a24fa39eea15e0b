"""`compare --commits` from end to end: a planted slowdown is found, a comment is none, the same code is refused."""

import subprocess

import pytest

pytestmark = pytest.mark.campaign

BENCH = "from time import sleep\nfrom work import SECONDS\n\ndef make():\n    return lambda samples: sleep(SECONDS)\n"


@pytest.fixture
def repository(workshop):
    """Four commits in the working folder: the first one, a comment, a slower one, a word about it."""
    top = workshop

    def git(*words):
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=top, check=True, capture_output=True)

    git("init", "-q")
    (top / "bench.py").write_text(BENCH)
    for name, file, text in (
        ("first", "work.py", "SECONDS = 0.02\n"),
        ("comment", "work.py", "SECONDS = 0.02  # a word\n"),
        ("slower", "work.py", "SECONDS = 0.06\n"),
        ("words", "README", "slower\n"),
    ):
        (top / file).write_text(text)
        git("add", "bench.py", file)
        git("commit", "-q", "-m", name)
        git("tag", name)


def test_a_slowdown_between_two_commits_is_found_and_a_comment_is_none(cli, repository, tmp_path):
    def compared(*commits):
        return cli(
            "compare", "--commits", *commits, "--model", "python:bench.py:make", "--set", "seconds=1",
            "--set", "rounds=6", "--set", "meters=latency", "--min-effect", "50%",
            XDG_CACHE_HOME=str(tmp_path / "cache"),
        )  # fmt: skip

    slower = compared("comment", "slower")
    assert (slower.returncode, "SLOWER" in slower.stdout) == (1, True), slower.stderr
    assert "BASE: commit" in slower.stdout and "(comment), comment" in slower.stdout
    comment = compared("first", "comment")
    assert (comment.returncode, "SAME" in comment.stdout) == (0, True), comment.stderr
    same = compared("slower", "words")
    assert same.returncode == 2
    assert "both commits run the same code" in same.stderr
