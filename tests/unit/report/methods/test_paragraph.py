"""The set-up in words: what was measured, how, where, and what went wrong, all of it from records."""

import json
from dataclasses import replace

import pytest
import report_runs
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Environment, Measurement, Pilot, Spec
from speechmeter.report.methods.paragraph import methods, written
from speechmeter.report.methods.words import listed

DESK = Environment(
    facts={"host": "desk", "system": "Linux-6.1", "python": "3.12.1", "cpu": "Some CPU 3000", "cores_total": 8,
           "memory_bytes": 16 * 2**30, "governor": "performance", "threads": {"OMP_NUM_THREADS": "1"},
           "packages": {"speechmeter": "0.1.0", "torch": "2.11.0"}, "git": "abc123-dirty"}
)  # fmt: skip
BOARD = Environment(
    facts={**DESK.facts, "host": "board", "cpu": "Small CPU", "packages": {"torch": "2.9.0"}, "git": ""}
)
KNOWN = {one.fingerprint: one.to_json() for one in (DESK, BOARD)}
RANDOM = Measurement.of(
    metrics.ITEMS,
    [1.0],
    notes={"notes": ["random weights: calls cost the same as with trained ones, but the output has no meaning"]},
)
REPEATS = {"mode": "repeats", "discard": 1, "samples": 10}


def taken(name="hubert", samples=10, round=0, environment=DESK, host="desk", **changes):
    """A measured record with stages, on a machine that is known."""
    changes.setdefault("protocol", REPEATS)
    held = [
        Measurement.of(metrics.LATENCY, [0.1] * samples),
        Measurement.of(metrics.LATENCY, [0.01] * samples, scope="stage:copy", notes={"clocked": False}),
        Measurement.of(metrics.LATENCY, [0.02] * samples, scope="stage:features"),
        Measurement.of(metrics.LATENCY, [0.08] * samples, scope="stage:model"),
        RANDOM,
    ]
    return make_record(make_case(name, **changes), *held, round=round, sequence=round, host=host,
                       environment=environment.fingerprint, started="2026-05-01T10:00:00+00:00")  # fmt: skip


def said(records, **options):
    return dict(methods(records, KNOWN, **options).sentences)


def test_models_sizes_and_the_clock_are_those_of_the_records():
    records = [taken(name, seconds=s, batch=b) for name in ("tera", "hubert") for s in (0.5, 2.0) for b in (1, 4)]
    found = said(records)
    assert found["subjects"] == "We measured latency of 2 models (tera and hubert) with Speechmeter 0.1.0."
    assert found["input"] == (
        "The input was Gaussian noise at 16 kHz (seed 0). Items lasted 0.5 and 2 s and were fed in batches of 1 and 4."
    )
    assert "the clock covers the stages features and model; copy was not timed (boundary +features)" in found["clock"]
    assert found["settings"] == "Calls ran on the CPU in float32 with 1 thread."
    assert found["machines"] == (
        "All measurements were made on one machine: Some CPU 3000 with 1 of 8 cores used, 16.0 GiB of memory, "
        "clock governor performance, Linux-6.1."
    )
    assert found["software"] == (
        "Software: Python 3.12.1, torch 2.11.0; the working directory was at commit abc123 with uncommitted changes."
    )
    assert found["random"].startswith("The weights of all of them were random")
    assert found["dates"] == "Measured on 2026-05-01."


def test_one_round_has_no_interval_and_several_have():
    assert said([taken()])["rounds"] == (
        "Each case was measured in 1 round, in a fresh process. Times are medians of the timed calls; one round gives "
        "no interval."
    )
    several = said([taken(round=n) for n in range(3)])["rounds"]
    assert several.startswith("Each case was measured in 3 rounds, each in a fresh process. Times are geometric means")
    assert "95 % intervals over rounds (Student's t on logarithms)." in several
    uneven = said([*(taken(round=n) for n in range(3)), taken("tera")])["rounds"]
    assert "1 to 3 rounds" in uneven and "cases of one round have none" in uneven
    chosen = [replace(taken(round=n), pilot=Pilot(rounds=2, sd=0.1, degrees=4)) for n in range(3)]
    assert "chosen from the spread of the first ones" in said(chosen)["rounds"]


def test_the_statistic_that_is_shown_is_the_one_that_is_described():
    assert "Times are the mean ± standard deviation of all samples." in said([taken()], statistic="mean-sd")["rounds"]


def test_processes_are_claimed_only_where_the_records_show_them():
    inline = Environment(facts={**DESK.facts, "launcher": "inline"})
    unknown = Environment(facts={**DESK.facts, "threads": {"OMP_NUM_THREADS": None}})
    for environment, words in ((inline, "in 1 round, in one process for all cases."), (unknown, "in 1 round. ")):
        record = taken(environment=environment)
        found = methods([record], {environment.fingerprint: environment.to_json()})
        assert words in dict(found.sentences)["rounds"]
        assert "fresh" not in found.paragraph


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (REPEATS, "In each round the first call was dropped, then 10 calls were timed."),
        ({**REPEATS, "discard": 3}, "the first 3 calls were dropped, then 10 calls"),
        ({**REPEATS, "discard": 0}, "In each round 10 calls were timed."),
        ({"warmup": 30}, "warm-up calls were made until their time was steady (at most 30), then"),
        ({"mode": "schedule", "wait": 1, "warmup": 2, "active": 3, "repeat": 4},
         "a schedule (wait 1, warmup 2, active 3, repeat 4)"),
        ({**REPEATS, "find": "max-batch"}, "trials of a search (max-batch)"),
    ],
)  # fmt: skip
def test_how_samples_were_taken(protocol, words):
    assert words in said([taken(protocol=protocol)])["samples"]


def test_the_number_of_calls_is_that_of_the_records_not_of_the_plan():
    assert "7 to 9 calls were timed" in said([taken(samples=9), taken("tera", samples=7)])["samples"]


def test_several_machines_are_described_one_by_one():
    records = [taken("tera"), taken("hubert"), taken("tera", host="board", environment=BOARD)]
    found = said(records)
    assert found["machines"].startswith("The measurements were made on 2 machines. desk: Some CPU 3000")
    assert "board (only tera): Small CPU" in found["machines"]
    assert "torch 2.11.0 and 2.9.0" in found["software"]


def test_a_machine_of_which_nothing_is_known_is_not_made_up():
    record = replace(taken(), environment="gone")
    assert said([record])["machines"].endswith("the records hold no facts about it.")
    assert "software" not in said([record])


def test_failures_and_what_was_left_out_are_named():
    failed = replace(taken("large", seconds=8.0), status="oom", reason="needs 30 GiB", measurements=())
    partly = [taken("small"), replace(taken("small", round=1), status="timeout", measurements=())]
    absent = make_record(make_case("other", protocol=REPEATS), status="unavailable", reason="not installed")
    skipped = make_record(make_case("small", seconds=9.0, protocol=REPEATS), status="skipped")
    found = said([failed, *partly, absent, skipped])["failures"]
    assert "1 of 4 cases failed: large · cpu · 8 s × 1 (oom)." in found
    assert "the results are from the other rounds: small · cpu · 1 s × 1 (1 of 2 rounds failed: timeout)." in found
    assert "1 of 4 cases could not be measured: other · cpu · 1 s × 1 (not installed)." in found
    assert "1 of 4 cases were left out by the plan: small · cpu · 9 s × 1." in found
    assert "failures" not in said([taken()])


def test_warnings_are_counted_by_case():
    busy = [replace(taken(name), warnings=(f"other processes were busy: they used {n}% of the cores; wait",))
            for n, name in enumerate(["a", "b"])]  # fmt: skip
    assert said([*busy, taken("c")])["warnings"] == "Warnings: other processes were busy (2 of 3 cases)."


def test_axes_that_vary_or_are_not_as_usual_are_named():
    records = [taken("a"), taken("b", quantize="int8-dynamic"), taken("c", compile=True)]
    assert said(records)["settings"] == (
        "Calls ran on the CPU in float32 with 1 thread; quantize none or int8-dynamic and compile off or on."
    )


def test_what_could_not_be_measured_is_not_claimed():
    record = taken(meters=("latency", "energy"))
    absent = Measurement.absent(metrics.ENERGY_CPU, "no energy sensor: powercap is missing")
    found = said([replace(record, measurements=(*record.measurements, absent))])
    assert found["subjects"].startswith("We measured latency of one model (hubert)")
    assert found["other figures"] == "Energy could not be measured (no energy sensor: powercap is missing)."


def test_energy_names_what_it_was_read_from():
    record = taken(meters=("latency", "energy"))
    read = Measurement.of(metrics.ENERGY_SYSTEM, [1.0], source="powertop reports")
    found = said([replace(record, measurements=(*record.measurements, read))])
    assert "Energy was read from powertop reports." in found["other figures"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (Spec(plugin="audio", name="sample", source="sample"), "the speech sample that ships with Speechmeter"),
        (Spec(plugin="audio", name="a.wav", source="x/a.wav", options={"sha256": "1"}), "the recording a.wav, short"),
        (Spec(plugin="audio", name="set", source="x/set", options={"files": "1"}), "the recordings in set."),
        (Spec(plugin="data", name="dev.tsv", source="dev.tsv"), "recordings of dev.tsv (1 items)"),
        (Spec(plugin="shapes", name="shapes"), "utterance shapes (1 items)"),
    ],
)  # fmt: skip
def test_the_input_is_named(spec, words):
    assert words in said([taken(workload=spec)])["input"]


def test_every_example_of_a_run_can_be_described():
    for records in (report_runs.systems(), report_runs.losses(), report_runs.training(), report_runs.grid("alpha")):
        assert said(records)["subjects"].startswith("We measured")


def test_formats_hold_the_same_paragraph():
    found = methods([taken("a_b")], KNOWN)
    plain, markdown, latex, data = (written(found, format) for format in ("table", "markdown", "latex", "json"))
    assert " ".join(plain.split("\n\n")[0].split()) == found.paragraph
    assert all(len(line) <= 100 for line in plain.splitlines())
    assert markdown.endswith(f"```bibtex\n{found.bibtex}\n```")
    assert r"(a\_b) with Speechmeter~\cite{speechmeter} 0.1.0." in " ".join(latex.split())
    assert "% @software{speechmeter," in latex
    assert json.loads(data)["bibtex"] == found.bibtex
    assert json.loads(data)["paragraph"] == found.paragraph


def test_a_format_for_tables_is_refused_and_so_is_an_empty_run():
    with pytest.raises(InputError, match="methods is text; the format csv holds tables only; choose from: table, mark"):
        written(methods([taken()], KNOWN), "csv")
    with pytest.raises(InputError, match="nothing to describe"):
        methods([], {})


def test_hostile_names_stay_text():
    found = methods([taken("x\n\\input{/etc/passwd}<script>")], KNOWN)
    assert r"\input{" not in written(found, "latex")
    assert "<script" not in written(found, "markdown")
    assert "\n" not in found.paragraph


def test_the_command_prints_it(tmp_path, command):
    run = report_runs.write(tmp_path / "run", [taken("alpha")], DESK)
    done = command("show", run, "--metric", "methods", "--stat", "mean-sd")
    assert done.code == 0, done.err
    assert done.out.startswith("We measured latency of one model (alpha) with Speechmeter 0.1.0.")
    assert "mean ± standard deviation" in " ".join(done.out.split())
    assert done.out.rstrip().endswith("}")


def test_long_lists_are_cut():
    assert listed("abc") == "a, b and c"
    assert listed(map(str, range(20))) == "0, 1, 2, 3, 4, 5, 6 and 13 others"


def test_of_all_that_was_imported_a_sentence_names_what_nothing_else_requires():
    packages = {"packages": {"faster-whisper": "1.2", "idna": "3", "numpy": "2.0"}, "git": ""}
    here = Environment(facts={**DESK.facts, **packages, "leading_packages": ["faster-whisper"]})
    found = methods([taken(environment=here)], {here.fingerprint: here.to_json()})
    assert dict(found.sentences)["software"] == "Software: Python 3.12.1, faster-whisper 1.2, numpy 2.0."
