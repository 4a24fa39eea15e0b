"""`losses:` is short for models that are fed shapes."""

import pytest

from speechmeter.core.errors import InputError, PlanError
from speechmeter.plan.study import study_from_file, study_from_python


def test_losses_are_models_on_shapes():
    study = study_from_python({"losses": ["ours", {"name": "ten", "load": "ours-pruned", "states": 10}], "batch": 4})
    first, second = study.cells.cases
    assert (first.subject.plugin, first.subject.source, first.subject.name) == ("transducer-loss", "ours", "ours")
    assert (second.subject.source, second.subject.name) == ("ours-pruned", "ten")
    assert second.subject.options == {"states": 10}
    assert first.workload.plugin == "shapes"
    assert (first.axes["part"], first.axes["vocabulary"], first.axes["keep"]) == ("step", 500, "none")


def test_losses_stand_beside_models_and_take_the_workload_that_is_named():
    plan = {
        "models": ["transducer-loss:ours"],
        "losses": "ours-torch",
        "shapes": {"count": 90},
        "part": ["loss", "step"],
    }
    cases = study_from_python(plan).cells.cases
    assert [(case.subject.source, case.axes["part"]) for case in cases] == [
        ("ours", "loss"),
        ("ours", "step"),
        ("ours-torch", "loss"),
        ("ours-torch", "step"),
    ]
    assert cases[0].workload.options == {"count": 90}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("losses: []\n", 1, "list of names"),
        ("batch: 4\nlosses:\n  - ours\n  - 3\n", 4, "a name, or a mapping with `name`"),
        ("losses:\n  - ours\n  - {name: x, load: ours, colour: red}\n", 3, "unknown key 'colour'"),
        ("losses: [ours]\nvocabulary: 1\n", 2, "at least 2"),
        ("losses: [ours]\nkeep: all\n", 2, "one of none, original"),
    ],
)
def test_a_refusal_names_the_line(tmp_path, text, line, said):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(PlanError, match=said) as refusal:
        study_from_file(path)
    assert f"{path}:{line}:" in str(refusal.value)


def test_the_shipped_plan_names_every_loss(request):
    from speechmeter.subjects.losses.known import BY_NAME

    try:
        study = study_from_file(request.config.rootpath / "plans" / "transducer-losses.yaml")
    except InputError as error:
        pytest.fail(str(error))
    assert {case.subject.source for case in study.cells.cases} == set(BY_NAME)
    assert {case.axes["part"] for case in study.cells.cases} == {"loss", "step"}
