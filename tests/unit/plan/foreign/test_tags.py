"""HyperPyYAML without HyperPyYAML: references are followed, nothing is run."""

import pytest

from speechmeter.core.errors import PlanError
from speechmeter.plan.foreign.tags import TagKeeper, Values
from speechmeter.plan.source import parse_plan


def values(text):
    return Values(parse_plan(text, "f.yaml", loader=TagKeeper), "f.yaml")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("!ref <root>", "/data"),
        ("!copy <root>", "/data"),
        ("!ref <root>/models/x", "/data/models/x"),
        ("!ref <root>/<inner[name]>", "/data/deep"),
        ("!ref <inner[list][1]>", 4),
        ("!ref <inner>", {"name": "deep", "list": [1, 4]}),
        ("!ref <again>", "/data"),
        ("[!ref '<inner[list][0]>', 2]", [1, 2]),
    ],
)
def test_references_are_followed(written, meant):
    text = f"root: /data\nagain: !ref <root>\ninner: {{name: deep, list: [1, 4]}}\nkey: {written}\n"
    assert values(text).get(("key",)) == meant


def test_a_nested_key_behind_a_reference():
    assert values("a: {b: 3}\nkey: !ref <a>\n").get(("key", "b")) == 3


def test_an_absent_key_is_none():
    found = values("a: {b: 3}\n")
    assert found.get(("c",)) is None
    assert found.get(("a", "c")) is None
    assert found.get(("a", "b", "c")) is None


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("\nkey: !new:os.system [touch pwned]\n", 2, "'!new:os.system' is not supported"),
        ("key: !apply:os.system {command: touch pwned}\n", 1, "'!apply:os.system' is not supported"),
        ("key: !!python/object/apply:os.system [touch pwned]\n", 1, "is not supported"),
        ("key: !include:/etc/passwd\n", 1, "'!include:/etc/passwd' is not supported"),
        ("key: [1,\n  !name:os.getcwd ]\n", 2, "'!name:os.getcwd' is not supported"),
        ("n: 3\nkey: !ref <n> * 2\n", 2, "is not a simple reference such as `!ref <key>`"),
        ("key: !ref __import__('os')\n", 1, "is not a simple reference such as `!ref <key>`"),
        ("key: !ref <absent>\n", 1, "no value that '<absent>' refers to"),
        ("a: [1]\nkey: !ref <a[7]>\n", 2, "no value that '<a[7]>' refers to"),
        ("other: !ref <key>\nkey: !ref <other>\n", 2, "refers to itself"),
        ("key: !ref [a]\n", 1, "is not supported"),
    ],
)
def test_what_would_need_code_is_one_line_with_its_place(text, line, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError) as refusal:
        values(text).get(("key",))
    assert str(refusal.value).startswith(f"f.yaml:{line}: ")
    assert what in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_references_that_multiply_end():
    levels = "".join(f"k{n + 1}: [{', '.join([f'!ref <k{n}>'] * 9)}]\n" for n in range(9))
    with pytest.raises(PlanError, match="too many references"):
        values(f"k0: 1\n{levels}").get(("k9",))


def test_a_tag_that_nobody_asks_for_does_no_harm():
    assert values("object: !new:os.system [touch pwned]\nkey: 1\n").get(("key",)) == 1
