"""Errors name options by key, and whoever shows them spells the keys."""

import pytest

from speechmeter.cli.errors import as_typed
from speechmeter.cli.main import app
from speechmeter.core.errors import (
    InterruptedRun,
    PlanError,
    RunDirError,
    StoppedRun,
    as_python,
    command_line,
    for_python,
)

TAKEN = RunDirError("it contains a run", key="output", fix="use `resume`, or `launcher: inline`, not `name`")


def test_an_error_names_keys_as_a_plan_has_them():
    assert str(TAKEN) == "`output`: it contains a run; use `resume`, or `launcher: inline`, not `name`"


def test_a_command_spells_keys_as_its_own_flags():
    assert TAKEN.message(as_typed(app, ["run"])) == (
        "--output: it contains a run; use --resume, or --launcher inline, not `name`"
    )


def test_a_command_leaves_keys_that_it_has_no_flag_for():
    assert "use `resume`" in TAKEN.message(as_typed(app, ["show", "RUN"]))


def test_a_plan_key_without_a_flag_is_spelt_with_set():
    error = PlanError("too short", key="limits.time_s", fix="`limits.time_s: 60`")
    assert error.message(as_typed(app, ["run"])) == "--set limits.time_s: too short; --set limits.time_s=60"


@pytest.mark.parametrize(
    ("key", "value", "typed"),
    [
        ("meters", "[latency, memory]", "--meters latency,memory"),
        ("models", "[log-mel]", "--model log-mel"),
        ("triangle", "false", "--no-triangle"),
        ("triangle", "true", "--triangle"),
        ("compile", "true", "--compile true"),
        ("limits", "{time_s: 120}", "--set 'limits={time_s: 120}'"),
        ("data", "{manifest: test.tsv}", "--set 'data={manifest: test.tsv}'"),
    ],
)
def test_a_value_is_spelt_as_a_shell_takes_it(key, value, typed):
    assert as_typed(app, ["run"], own=key)(key, value) == typed


def test_keys_stay_as_they_are_in_a_message_about_a_line_of_a_plan():
    error = PlanError("no list", where="plan.yaml:3", fix="write `meters: [latency]`, or add `trust`")
    spelt = error.message(as_typed(app, ["run"], error.where))
    assert spelt == "plan.yaml:3: no list; write `meters: [latency]`, or add --trust"


def test_a_proposed_command_has_its_flags():
    assert command_line("show", "RUN", metric="rtf", dry_run=True) == "speechmeter show RUN --metric rtf --dry-run"


def test_errors_carry_the_exit_code_of_the_command():
    assert [kind.exit_code for kind in (PlanError, StoppedRun, InterruptedRun)] == [2, 1, 130]


@pytest.mark.parametrize(
    ("key", "value", "typed"),
    [
        ("launcher", "subprocess", '`launcher="subprocess"`'),
        ("resume", "True", "`resume=True`"),
        ("seconds", "[1, 2]", "`seconds=[1, 2]`"),
        ("limits.memory_gib", "8", '`limits={"memory_gib": 8}`'),
        ("output", "", "`output`"),
        ("trace", "true", "`trace=True`"),
        ("limits", "{time_s: 120, keep: true}", '`limits={"time_s": 120, "keep": True}`'),
        ("filter", "[encoder.*]", '`filter=["encoder.*"]`'),
        ("train", "[{load: python:model.py:make}]", '`train=[{"load": "python:model.py:make"}]`'),
    ],
)
def test_a_caller_in_python_reads_keys_as_arguments(key, value, typed):
    assert as_python(key, value) == typed


def test_only_lines_of_a_plan_keep_their_keys_for_a_caller_in_python():
    @for_python
    def refuse(where):
        raise PlanError("no", where=where, fix="use `launcher: inline`")

    for where, fix in ((None, '`launcher="inline"`'), ("plan.yaml:3", "`launcher: inline`")):
        with pytest.raises(PlanError, match=f"use {fix}$"):
            refuse(where)
