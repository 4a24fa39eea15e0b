"""A plan that names the log of an external meter: its watts become the system's energy, and a bad log is told.

The sound log takes 11 s: idle and three windows of more than 2 s each are measured by the wall.
"""

import json
import time

import pytest

PLAN = "models: [python:fakes.py:{model}]\nseconds: 1\nrounds: 1\nmeters: [energy]\npower_log: {log}\n"
STEP_S, LASTS_S, BEFORE_S = 0.1, 600, 5
CALL_S = 0.1
"""What a call of the subject `slow` takes at least."""


def rising_log(start_s):
    """10 W at the start, one more every second: the mean of any window is the power in its middle."""
    times_s = [start_s + STEP_S * step for step in range(round(LASTS_S / STEP_S))]
    return "time_s,watts\n" + "".join(f"{at_s:.3f},{10 + at_s - start_s:.4f}\n" for at_s in times_s)


def measured(cli, workshop, log, model):
    (workshop / "plan.yaml").write_text(PLAN.format(model=model, log=log))
    done = cli("run", "plan.yaml", "--trust", "-o", "run")
    assert done.returncode == 0, done.stderr
    (record,) = map(json.loads, (workshop / "run/records.jsonl").read_text().splitlines())
    assert record["status"] == "ok", record["reason"]
    return {m["metric"]: m for m in record["measurements"]}, done.stdout


@pytest.mark.campaign
def test_the_logs_watts_are_the_energy_of_the_system(cli, workshop):
    start_s = time.time() - BEFORE_S
    (workshop / "log.csv").write_text(rising_log(start_s))
    found, shown = measured(cli, workshop, "log.csv", "slow")
    energy, power, idle = (found[f"{name}.v1"] for name in ("energy_system", "power_system", "power_system_idle"))
    assert energy["source"] == "power log"
    notes = energy["notes"]
    first_s, last_s = notes["window_epoch"]
    assert len(notes["window_s"]) == 3
    whole_j = sum(watts * seconds for watts, seconds in zip(power["values"], notes["window_s"], strict=True))
    middle_w = 10 + (first_s + last_s) / 2 - start_s
    assert whole_j / (last_s - first_s) == pytest.approx(middle_w, rel=0.001)
    per_call_j = [joules * calls for joules, calls in zip(energy["values"], notes["calls"], strict=True)]
    assert sum(per_call_j) == pytest.approx(whole_j, rel=0.001)
    assert all(joules >= CALL_S * idle["values"][0] for joules in energy["values"])
    assert 10 < idle["values"][0] < min(power["values"])  # it was read before
    assert "energy, system" in shown
    assert "read from power log" in shown


BAD_LOGS = {
    "absent": (None, "power log log.csv cannot be read: No such file"),
    "another table": ("when,joules\n1,2\n", "is not a power log: its first line must be time_s,watts"),
    "empty": ("", "is not a power log"),
    "not a number": ("time_s,watts\n1.0,many\n", "log.csv, line 2: a line must hold two numbers, not '1.0,many'"),
    "not finite": ("time_s,watts\n1.0,nan\n", "line 2: '1.0,nan' is not a finite number"),
    "a single report of powertop": (
        "PowerTOP Version;2.14 ran at …\n",
        "cannot be assigned to calls: run powertop with --iteration=N",
    ),
    "back in time": (
        "time_s,watts\n2.0,5\n1.0,5\n",
        "has times that decrease at 1.000: the times must increase from line to line",
    ),
}


@pytest.mark.parametrize("name", BAD_LOGS)
def test_a_bad_log_is_told_in_the_record_and_on_the_screen(name, cli, workshop):
    text, words = BAD_LOGS[name]
    if text is not None:
        (workshop / "log.csv").write_text(text)
    found, shown = measured(cli, workshop, "log.csv", "nothing")
    assert "energy_system.v1" not in found or not found["energy_system.v1"]["values"]
    reasons = [m.get("unavailable") or "" for metric, m in found.items() if metric.startswith("energy_")]
    assert any(words in reason for reason in reasons), reasons
    assert words in " ".join(shown.split())


@pytest.mark.parametrize("value", ["5", "''", "[a.csv]"])
def test_something_else_than_a_file_name_is_refused_before_the_run(value, cli, workshop):
    (workshop / "plan.yaml").write_text(PLAN.format(model="nothing", log=value))
    done = cli("run", "plan.yaml", "--trust", "-o", "run")
    assert done.returncode == 2, done.stdout
    assert "plan.yaml:5: power_log" in done.stderr
    assert not (workshop / "run").exists()


def test_a_log_is_looked_for_beside_its_plan(cli, workshop):
    (workshop / "plans").mkdir()
    (workshop / "plans/log.csv").write_text("when,joules\n")
    plan = PLAN.format(model="nothing", log="log.csv")
    (workshop / "plans/plan.yaml").write_text(plan.replace("fakes.py", str(workshop / "fakes.py")))
    done = cli("run", "plans/plan.yaml", "--trust", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert "plans/log.csv is not a power log" in " ".join(done.stdout.split())
