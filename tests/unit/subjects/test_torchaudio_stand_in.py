import sys
from importlib.util import find_spec

import pytest

from speechmeter.core.errors import SubjectError
from speechmeter.subjects.torchaudio_stand_in import explaining_torchaudio, torchaudio_or_stand_in

absent = pytest.mark.skipif(find_spec("torchaudio") is not None, reason="torchaudio is installed")


@absent
def test_it_stands_in_while_a_toolkit_is_imported_and_is_gone_afterwards():
    with torchaudio_or_stand_in() as covered:
        import torchaudio

        assert covered
        assert not hasattr(torchaudio, "list_audio_backends")
    assert find_spec("torchaudio") is None
    assert not [name for name in sys.modules if name.startswith("torchaudio")]
    with pytest.raises(AttributeError, match=r"torchaudio\.load is needed, and torchaudio is not installed"):
        torchaudio.load("a.wav")


@absent
def test_it_goes_when_the_import_fails():
    with pytest.raises(RuntimeError), torchaudio_or_stand_in():
        raise RuntimeError
    assert "torchaudio" not in sys.modules


@absent
def test_one_that_is_installed_and_broken_is_reported_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "torchaudio.py").write_text("raise OSError('libcudart.so.13: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SubjectError, match=r"cannot be loaded: libcudart.*uninstall it"), torchaudio_or_stand_in():
        pass


@absent
def test_one_that_is_installed_is_used(tmp_path, monkeypatch):
    (tmp_path / "torchaudio.py").write_text("real = True")
    monkeypatch.syspath_prepend(tmp_path)
    with torchaudio_or_stand_in() as covered:
        import torchaudio

        assert (covered, torchaudio.real) == (False, True)
    assert sys.modules.pop("torchaudio").real


@absent
def test_an_error_of_one_that_cannot_be_loaded_says_what_to_do(tmp_path, monkeypatch):
    """As transformers passes it on, which imports it with its front-ends."""
    with pytest.raises(RuntimeError), explaining_torchaudio():
        raise RuntimeError("this needs torchaudio")
    (tmp_path / "torchaudio.py").write_text("raise OSError('Could not load this library: _torchaudio.abi3.so')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SubjectError, match=r"cannot be loaded: .*abi3.*uninstall it"), explaining_torchaudio():
        raise RuntimeError("Failed to import transformers.x because of: _torchaudio.abi3.so")
    with pytest.raises(RuntimeError, match="another"), explaining_torchaudio():
        raise RuntimeError("another")
