"""Which file is whose, and what a hostile one can do: nothing."""

import pytest

from speechmeter.core.errors import InputError
from speechmeter.plan.study import read_plan, study_from_file

BOMB = "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(12))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("models: [log-mel]\nseconds: [1]\n", {"models", "seconds"}),
        ("models: [log-mel]\ngeneral: {}\n", {"models", "general"}),
        ("cascades: []\nstage1: {}\n", {"cascades", "stage1"}),
        ("seconds: [1]\n", {"seconds"}),
    ],
)
def test_a_plan_of_ours_is_left_as_it_is(tmp_path, text, keys):
    (tmp_path / "plan.yaml").write_text(text)
    found = read_plan(tmp_path / "plan.yaml")
    assert set(found.source.data) == keys
    assert found.notes == ()


@pytest.mark.parametrize("key", ["models", "pretrained_model", "general"])
@pytest.mark.parametrize(
    "hostile",
    [
        BOMB,
        "deep: " + "[" * 5000 + "]" * 5000 + "\n",
        "self: &self [*self]\n",
        "? [a, b]\n: 1\n",
        "broken: [1\n",
        "bytes: !!binary '%%%'\n",
    ],
    ids=["bomb", "deep", "self", "key", "broken", "binary"],
)
def test_a_hostile_file_is_one_line(tmp_path, key, hostile):
    (tmp_path / "plan.yaml").write_text(f"{key}: {{source: x}}\n{hostile}")
    with pytest.raises(InputError) as refusal:
        study_from_file(tmp_path / "plan.yaml")
    assert "plan.yaml" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("key", ["models", "general"])
def test_tags_are_refused_where_the_format_has_none(tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(f"{key}: !!python/object/apply:os.system ['touch pwned']\n")
    with pytest.raises(InputError, match="tag"):
        study_from_file(tmp_path / "plan.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]
