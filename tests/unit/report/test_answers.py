"""The answers in words: large figures with units and intervals, a sentence, and what would settle the rest."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import report_runs

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report.answers import top_of
from speechmeter.report.sources import Source, read_sources


def top(records):
    return top_of(Source(name="run", host="desk", records=tuple(records), environments={}))


def test_a_grid_says_who_is_fastest_with_its_interval():
    made = top([*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)])
    assert made.headline.startswith("alpha is fastest")
    fastest = next(one for one in made.findings if one.label.startswith("fastest"))
    assert fastest.unit == "× real time" and fastest.interval.startswith("95 % interval") and fastest.name == "alpha"
    assert "of 2 models at 5 s × 1" in fastest.label and fastest.next.startswith("next: beta")


def test_one_round_is_said_beside_every_figure_and_what_gives_intervals():
    made = top(report_runs.once([*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)]))
    assert len(made.findings) == 3 and all(one.interval.startswith("one round") for one in made.findings)
    assert made.doubts == (
        "One round has no interval, so small differences may be chance. `--rounds 5` gives intervals.",
    )


def test_a_single_model_is_not_called_the_fastest():
    made = top(report_runs.grid("alpha"))
    assert "fastest" not in made.headline and made.headline.startswith("alpha runs at")


def test_systems_that_cannot_be_distinguished_are_named_with_what_would_settle_it():
    made = top(report_runs.systems())
    assert made.headline.startswith("exact has the lowest WER and takes 10.0 times as long as quick")
    assert made.findings[0].unit == "% WER"
    (doubt,) = made.doubts
    assert doubt.startswith("The intervals do not show which of quick and alike is fastest.") and "rounds" in doubt


def test_what_fits_is_said_with_what_does_not():
    made = top(report_runs.search())
    values = [(one.value, one.interval) for one in made.findings]
    assert ("256", "one round; nothing larger was tried") not in values[1:]
    assert any(interval.startswith("one round") for _, interval in values)
    assert made.headline.endswith("base takes a batch of 64 at 30 s (one round).")


def test_losses_and_modules_have_answers_of_their_own():
    assert top(report_runs.losses()).headline.startswith("ours is the fastest loss")
    assert "largest share of a call" in top(report_runs.training()).headline


def test_a_run_of_failures_says_so_and_has_no_figures():
    failed = [r for r in report_runs.grid("alpha") if r.status == "oom"]
    assert top(failed).headline == f"Nothing was measured: {len(failed)} oom." and not top(failed).findings


def test_names_of_several_settings_are_not_called_models():
    made = top([*report_runs.grid("alpha"), *report_runs.grid("alpha", 0.5, threads=8)])
    fastest = next(one for one in made.findings if one.label.startswith("fastest"))
    assert fastest.name == "threads 8" and "2 settings" in fastest.label


def test_a_live_run_says_whose_text_is_final_first(tmp_path):
    made = top(report_runs.live(tmp_path))
    assert made.headline == "prompt has the lowest final delay; prompt and restless have the lowest live WER."
    delay, errors = made.findings
    # answers come after 200, 210, … 430 ms: the twelfth of 24
    assert (delay.value, delay.unit, delay.name) == ("310", "ms", "prompt")
    assert delay.interval.startswith("95 % interval") and delay.charts[0] == "live"
    assert (errors.value, errors.unit) == ("0", "% live WER")


def test_memory_of_losses_is_said_to_be_of_the_exact_ones_alone():
    """A pruned loss needs less, and a table that lists all of them shows that."""
    deviations = {"ours": 1e-6, "theirs": 2e-6, "pruned": 0.05}
    memory = {"ours": 2e8, "theirs": 3e8, "pruned": 1e8}
    records = [
        replace(record, measurements=(
            *record.measurements,
            Measurement.of(metrics.LOSS_DEVIATION, [deviations[name]]),
            Measurement.of(metrics.MEMORY_CUDA_ALLOCATED, [memory[name]]),
        ))
        for name in deviations
        for part in ("loss", "step")
        for record in report_runs.loss(name, 0.01, part)
    ]  # fmt: skip
    made = top(records)
    assert "needs the least memory of the exact losses" in made.headline
    (memory_tile,) = (one for one in made.findings if "allocated" in one.label)
    assert memory_tile.label == "lowest peak allocated of 2 exact losses, whole step" and memory_tile.name == "ours"


def test_a_headline_without_intervals_says_so_once():
    two = [*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)]
    assert top(report_runs.once(two)).headline.count("one round") == 1
    assert "one round" not in top(two).headline


def test_the_figures_of_a_single_model_in_one_round_have_the_same_doubt():
    (doubt,) = top(report_runs.once(report_runs.grid("alpha"))).doubts
    assert doubt.startswith("One round has no interval")


def test_a_disturbed_figure_says_so_beside_it():
    text = "other processes were busy: they used {}% of the cores; close them, or wait"
    records = [
        replace(record, warnings=(text.format(40 + record.round),)) if record.round < 2 else record
        for record in report_runs.grid("alpha")
    ]
    made = top(records)
    speed = next(one for one in made.findings if one.unit == "× real time")
    assert speed.warning == "other processes were busy: they used 40% to 41% of the cores"
    # what other programs do not change has no such warning
    assert not any(one.warning for one in made.findings if one.unit.endswith("iB"))


def test_cases_are_counted_as_measured_and_of_how_many():
    grid = [*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)]
    failed = len({record.case.id for record in grid if record.status == "oom"})
    measured = len({record.case.id for record in grid if record.status == "ok"})
    assert failed
    slow = next(one for one in top(grid).findings if "real time" in one.clause)
    assert f"{measured} measured cases (of {measured + failed})" in slow.clause


@pytest.fixture
def unfinished(tmp_path):
    """A run with two of four planned cases."""
    path = report_runs.write(tmp_path / "half", report_runs.grid("alpha"), report_runs.CPU)
    cases = sorted({record.case.id for record in report_runs.grid("alpha")})
    (path / "planned.json").write_text(json.dumps({"rounds": 1, "cases": [*cases, "0" * 16, "1" * 16]}))
    return path


def test_an_unfinished_run_says_so_before_its_answer(unfinished):
    (source,) = read_sources([str(unfinished)])
    made = top_of(source)
    cases = len(source.cases)
    assert made.headline.startswith(f"Unfinished (2 of {cases + 2} cases have no record): alpha runs at")
    assert made.doubts[0].startswith(f"This run is unfinished: 2 of {cases + 2} cases have no record.")


def test_names_that_differ_only_at_their_ends_stay_apart():
    long = "a-very-long-name-of-a-model-that-was-trained-for-many-days"
    made = top([*report_runs.grid(f"{long}-small"), *report_runs.grid(f"{long}-large", 2.5)])
    assert made.headline.startswith("a-very-long-name-of") and "days-small is fastest" in made.headline


def test_a_delay_says_with_how_many_streams_where_several_were_tried():
    (source,) = read_sources([str(Path(__file__).parents[3] / "examples" / "runs" / "live-streams")])
    assert "ms with 1 stream" in top_of(source).headline
