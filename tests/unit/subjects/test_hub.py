"""Models of a hub: from the local cache, downloaded from a hub on a loopback address, or refused with the way out."""

import os
import subprocess
import sys

import pytest
from conftest import make_case
from fake_hub import COMMIT, fake_hub

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Spec
from speechmeter.subjects.hub import cached_file, may_be_hub_id
from speechmeter.subjects.speechbrain import SpeechBrainSubject
from speechmeter.subjects.speechbrain.sources import must_be_downloaded

MODEL = "somebody/small-asr"
HYPERPARAMS = b"type: EncoderASR\nmodules: {encoder: 1}\n"


def case(source=MODEL):
    return make_case(subject=Spec(plugin="speechbrain", name="small", source=source))


def cache(folder, **files):
    home = folder / "hub" / f"models--{MODEL.replace('/', '--')}" / "snapshots" / COMMIT
    home.mkdir(parents=True)
    for name, content in files.items():
        (home / f"{name}.yaml").write_bytes(content)
    return home


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "is_one"),
    [(MODEL, True), ("a/b/c", False), ("word", False), ("./a/b", False), ("/a", False), ("a/config.json", False)],
)
def test_a_hub_id_is_an_owner_and_a_name(source, is_one):
    assert may_be_hub_id(source) is is_one


def test_a_model_in_the_local_cache_is_used_without_a_network(home, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    snapshot = cache(home, hyperparams=HYPERPARAMS)
    assert cached_file(MODEL, "hyperparams.yaml") == snapshot / "hyperparams.yaml"
    assert not must_be_downloaded(MODEL)
    SpeechBrainSubject().check(case())


def test_what_the_cache_holds_is_checked_as_a_folder_is(home):
    cache(home, hyperparams=b"type: EncoderASR\nmodules: {other: 1}\n")
    with pytest.raises(SubjectError, match="in its section `modules`, which EncoderASR needs"):
        SpeechBrainSubject().check(case())


def test_a_model_that_is_nowhere_is_refused_offline_with_the_way_out(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SubjectError, match="not in the local cache, and `offline` is set"):
        SpeechBrainSubject().check(case())


def test_a_folder_comes_before_the_hub(home):
    folder = home / MODEL
    folder.mkdir(parents=True)
    (folder / "hyperparams.yaml").write_bytes(HYPERPARAMS)
    assert not must_be_downloaded(MODEL)
    SpeechBrainSubject().check(case())


def in_fresh_process(code, address, home):
    """The hub's address is read when its package is imported, so that this takes a process of its own."""
    environ = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    environ.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environ, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_model_is_downloaded_once_and_then_in_the_cache(home):
    pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    code = (
        "from speechmeter.subjects.hub import ask_hub, cached_file, download\n"
        "from speechmeter.core.errors import SubjectError\n"
        f"ask_hub('speechbrain', {MODEL!r})\n"
        f"cached = lambda: cached_file({MODEL!r}, 'hyperparams.yaml')\n"
        f"before, first, second = cached(), download({MODEL!r}), download({MODEL!r})\n"
        "print(before, first == second, cached().parent == first)\n"
        "print((first / 'sub/encoder.ckpt').read_bytes())\n"
        "try:\n"
        "    ask_hub('speechbrain', 'somebody/else')\n"
        "except SubjectError as error:\n"
        "    print(error)\n"
    )
    with fake_hub(MODEL, {"hyperparams.yaml": HYPERPARAMS, "sub/encoder.ckpt": b"weights"}) as address:
        said = in_fresh_process(code, address, home).splitlines()
    assert said[:2] == ["None True True", "b'weights'"]
    assert said[2].startswith("speechbrain:somebody/else is not a local directory, not in the local cache")
    assert "hf download somebody/else" in said[2]
    assert cached_file(MODEL, "hyperparams.yaml").read_bytes() == HYPERPARAMS
