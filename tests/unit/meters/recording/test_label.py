from __future__ import annotations

import subprocess
import sys

import pytest

from speechmeter import label


def test_label_imports_no_torch():
    code = "import sys, speechmeter\nwith speechmeter.label('x'): pass\nassert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_labelled_function_returns_and_raises_as_before():
    @label("x")
    def half(value: float) -> float:
        if value < 0:
            raise ValueError("below zero")
        return value / 2

    assert [half(4), half(2)] == [2, 1]
    assert half.__name__ == "half"
    with pytest.raises(ValueError, match="below zero"):
        half(-1)
