import sys
from importlib.util import find_spec

import pytest

from speechmeter.core.errors import SubjectError
from speechmeter.subjects.torchaudio_stand_in import torchaudio_or_stand_in

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
