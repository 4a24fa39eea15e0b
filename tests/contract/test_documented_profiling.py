"""The examples of the page on profiling run as they stand, and the file it describes has those keys."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from speechmeter.core.memory_timeline import MemoryTimeline

PAGE = (Path(__file__).parents[2] / "docs/howto/profiling.md").read_text()
EXAMPLES = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "integrations" not in block]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example, tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch", reason="needs torch")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/howto/profiling.md", "exec"), {"__name__": "example"})
    assert "| module | class |" in capsys.readouterr().out


def test_every_key_of_the_timeline_is_described():
    table = PAGE.partition("| key | content |")[2].partition("\n\n")[0]
    keys = [line.split("|")[1] for line in table.splitlines() if "`" in line]
    described = {name for cell in keys for name in re.findall(r"`(\w+)`", cell)}
    assert described == {"format", *(field.name for field in fields(MemoryTimeline))}
