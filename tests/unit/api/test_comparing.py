"""What a smallest effect may be written as, and which records are held against each other."""

import math
import random

import pytest
from conftest import make_case, make_record

from speechmeter.api.comparing import compare, select, share
from speechmeter.api.histories import history
from speechmeter.api.runs import load
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Environment, Measurement, Spec
from speechmeter.report import choose
from speechmeter.store.merge import merge
from speechmeter.store.run_dir import Planned, RunWriter


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("0.05", 0.05), (0.2, 0.2), ("150%", 1.5)])
def test_a_share_is_a_percentage_or_a_number_below_one(text, value):
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", 5, "1", "1.5"])
def test_a_bare_number_from_one_on_is_refused_with_the_way_out(text):
    with pytest.raises(InputError, match=f"write {text}%"):
        share(text)


@pytest.mark.parametrize("text", ["much", "0", "-5%", "inf", "nan"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(InputError, match="not a percentage above 0"):
        share(text)


def run_of_two_machines(path):
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for sequence, (host, round_) in enumerate((host, n) for n in range(4) for host in ("pi", "orin")):
            latency_s = {"pi": 2.0, "orin": 1.0}[host] * (1 + round_ / 1000)
            environment = Environment(facts={"host": host})
            latency = Measurement.of(metrics.LATENCY, [latency_s])
            place = {"host": host, "environment": environment.fingerprint}
            store.append(make_record(make_case(), latency, round=round_, sequence=sequence, **place), environment)
    return path


def test_machines_of_one_run_are_compared_by_host_and_never_by_pairs(tmp_path):
    run = run_of_two_machines(tmp_path / "run")
    base, new = select(f"{run}@host=pi"), select(f"{run}@host=orin")
    with pytest.raises(InputError, match="host: 'pi' in BASE, 'orin' in NEW"):
        compare(base, new, {"latency": 0.05})
    (found,) = compare(base, new, {"latency": 0.05}, allow_different=True).verdicts
    assert (found.word, found.paired, round(found.ratio, 6)) == ("FASTER", False, 0.5)


def test_a_run_of_several_machines_is_not_held_against_one(tmp_path):
    run = run_of_two_machines(tmp_path / "run")
    with pytest.raises(InputError, match=r"2 machines: orin, pi; choose one: .*@host=orin"):
        compare(select(str(run)), select(f"{run}@host=pi"), {"latency": 0.05})
    both = compare(select(str(run)), select(str(run)), {"latency": 0.05})
    assert [v.word for v in both.verdicts] == ["SAME", "SAME"]


def test_tables_tell_machines_apart(tmp_path):
    made = load(run_of_two_machines(tmp_path / "run"))
    titles = [table.title for table in choose.tables(made.records, "latency")]
    assert [("host pi" in title, "host orin" in title) for title in titles] == [(True, False), (False, True)]
    assert [round(figure.value, 2) for _, figure in made.estimates("latency")] == [2.0, 1.0]


def run_over(path, **latencies_s):
    """A run of one model over recordings of these names."""
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for name, latency_s in latencies_s.items():
            workload = Spec(plugin="audio", name=name, source=name, options={"sha256": name})
            for round_ in range(3):
                latency = Measurement.of(metrics.LATENCY, [latency_s * (1 + round_ / 1000)])
                store.append(make_record(make_case(workload=workload), latency, round=round_))
    return select(str(path))


def test_each_input_is_held_against_the_same_input(tmp_path):
    base, new = (run_over(tmp_path / side, a=1.0, b=2.0) for side in ("base", "new"))
    found = compare(base, new, {"latency": 0.05})
    assert [(v.word, round(v.ratio, 6)) for v in found.verdicts] == [("SAME", 1.0), ("SAME", 1.0)]
    assert all("at different times" in note or "side by side" in note for note in found.notes)


def test_an_input_that_only_one_side_has_is_left_alone(tmp_path):
    base, new = run_over(tmp_path / "base", a=1.0), run_over(tmp_path / "new", a=1.0, b=2.0)
    found = compare(base, new, {"latency": 0.05})
    assert len(found.verdicts) == 1
    assert found.notes[0] == f"only in NEW: {new.groups[1][0].case.label}"
    assert found.family.exit_code() == 0


def test_the_only_other_input_is_held_against_it_where_that_is_allowed(tmp_path):
    base, new = run_over(tmp_path / "base", a=1.0), run_over(tmp_path / "new", b=2.0)
    with pytest.raises(InputError, match="measured differently: workload"):
        compare(base, new, {"latency": 0.05})
    (found,) = compare(base, new, {"latency": 0.05}, allow_different=True).verdicts
    assert found.ratio == pytest.approx(2.0)


@pytest.mark.parametrize("hosts", [("pi",), ("pi", "orin")])
def test_what_a_driver_left_out_does_not_keep_a_run_from_an_earlier_one(tmp_path, hosts):
    for path, driver in ((tmp_path / "old", None), (tmp_path / "new", "laptop")):
        with RunWriter(path) as store:
            store.begin("")
            for number, host in enumerate(hosts):
                case = make_case(seconds=number + 1.0)
                store.append(make_record(case, Measurement.of(metrics.LATENCY, [1.0]), host=host, sequence=number))
            if driver is not None:
                store.append(make_record(make_case("B"), status="unavailable", host=driver, sequence=9))
    found = compare(select(str(tmp_path / "old")), select(str(tmp_path / "new")), {"latency": 0.05})
    assert len(found.verdicts) == len(hosts)
    assert [note.partition(":")[0] for note in found.notes] == ["only in NEW"]


@pytest.mark.parametrize(
    ("word", "metric"),
    [("memory", metrics.MEMORY_CPU_PEAK), ("energy", metrics.ENERGY_SYSTEM), ("quality", metrics.WER)],
)
def test_words_of_show_are_compared_and_followed_through_a_history_as_well(tmp_path, word, metric):
    held = (metrics.MEMORY_CPU_PEAK, metrics.ENERGY_SYSTEM, metrics.WORD_ERRORS, metrics.REFERENCE_WORDS)
    for day in (1, 2):
        with RunWriter(tmp_path / f"run-{day}") as store:
            store.begin("")
            made = [Measurement.of(one, [4.0]) for one in held]
            store.append(make_record(make_case(), *made, host="desk", started=f"2026-05-0{day}T10:00:00.000+00:00"))
    base, new = (select(str(tmp_path / f"run-{day}")) for day in (1, 2))
    (verdict,) = compare(base, new, {word: 0.05}).verdicts
    assert verdict.metric == metric
    (series,) = history(str(tmp_path), {word: 0.05}).series
    assert (series.metric, len(series.points)) == (metric, 2)


def run_with(path, cells, *, planned=None, change=0.0, rounds=8, started="", meters=("latency",), name="fake"):
    """A run whose cells differ by their seconds; `cells` gives the statuses of a cell's rounds, "" for all ok."""
    draw = random.Random(path.name)  # not the whole path, which differs from run to run
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n", planned)
        sequence = 0
        for seconds, statuses in cells.items():
            for round_ in range(rounds):
                status = (statuses or ["ok"] * rounds)[round_]
                value = Measurement.of(metrics.LATENCY, [math.exp(draw.gauss(change, 0.01))])
                made = (value,) if status == "ok" else ()
                reason = "" if status == "ok" else "took over 20 s"
                fields = {"round": round_, "sequence": sequence, "status": status, "reason": reason, "started": started}
                store.append(make_record(make_case(name, seconds=seconds, meters=meters), *made, **fields))
                sequence += 1
    return path


def compared(base, new, **options):
    return compare(select(str(base)), select(str(new)), {"latency": 0.05}, **options)


def test_a_cell_that_new_lacks_is_missing_and_cannot_be_told(tmp_path):
    base, new = run_with(tmp_path / "base", {1.0: "", 2.0: ""}), run_with(tmp_path / "new", {1.0: ""})
    found = compared(base, new)
    assert {v.case.axes["seconds"]: v.word for v in found.verdicts}[2.0] == "MISSING"
    assert found.family.exit_code() == 3


def test_a_missing_cell_may_be_allowed_and_is_then_a_note(tmp_path):
    base, new = run_with(tmp_path / "base", {1.0: "", 2.0: ""}), run_with(tmp_path / "new", {1.0: ""})
    found = compared(base, new, allow_missing=True)
    assert [v.case.axes["seconds"] for v in found.verdicts] == [1.0]
    assert any(note.startswith("only in BASE") for note in found.notes)


def test_an_unfinished_run_says_how_many_of_its_cases_are_missing(tmp_path):
    cases = tuple(make_case(seconds=seconds).id for seconds in (1.0, 2.0, 4.0))
    planned = Planned(cases=cases, rounds=8)
    base = run_with(tmp_path / "base", {1.0: ""})
    new = run_with(tmp_path / "new", {1.0: ""}, planned=planned)
    assert "NEW is unfinished: 2 of 3 cases have no record" in compared(base, new).notes
    assert load(new).unfinished == "2 of 3 cases have no record"
    assert load(base).unfinished == ""


def test_a_kind_of_failure_that_base_never_had_is_a_regression(tmp_path):
    half = ["ok", "timeout"] * 4
    base, new = run_with(tmp_path / "base", {1.0: ""}), run_with(tmp_path / "new", {1.0: half})
    found = compared(base, new)
    assert (found.verdicts[0].word, found.family.exit_code()) == ("FAILED", 1)
    assert "4 of 8 rounds failed" in found.verdicts[0].reason


def test_of_the_same_failure_on_both_sides_nothing_can_be_told(tmp_path):
    half = ["ok", "timeout"] * 4
    base, new = run_with(tmp_path / "base", {1.0: half}), run_with(tmp_path / "new", {1.0: half})
    found = compared(base, new)
    assert (found.verdicts[0].word, found.family.exit_code()) == ("CANNOT TELL", 3)


@pytest.mark.parametrize(("change", "word"), [(0.04, "CANNOT TELL"), (0.2, "SLOWER")])
def test_between_two_runs_a_difference_within_the_allowance_is_no_change(tmp_path, change, word):
    base, new = run_with(tmp_path / "a/base", {1.0: ""}), run_with(tmp_path / "b/new", {1.0: ""}, change=change)
    found = compare(select(str(base)), select(str(new)), {"latency": 0.01})
    assert found.verdicts[0].word == word
    assert any("this alone can cause a difference of up to 5%" in note for note in found.notes)
    assert any(note.startswith("to compare side by side: speechmeter run") for note in found.notes)


@pytest.mark.parametrize(("min_effect", "word", "code"), [(0.05, "CANNOT TELL", 3), (0.15, "SAME", 0)])
@pytest.mark.parametrize("cells", [{1.0: ""}, {1.0: "", 2.0: "", 5.0: ""}])
def test_a_difference_within_the_allowance_is_the_same_only_where_both_fit_within_the_effect(
    tmp_path, cells, min_effect, word, code
):
    base, new = run_with(tmp_path / "a/base", cells), run_with(tmp_path / "b/new", cells, change=0.03)
    found = compare(select(str(base)), select(str(new)), {"latency": min_effect})
    assert ({v.word for v in found.verdicts}, found.family.exit_code()) == ({word}, code)


def test_the_spread_between_runs_is_taken_from_those_in_the_same_folder(tmp_path):
    for day in range(1, 9):
        offset = 0.1 * (-1) ** day  # runs of one code that differ by a tenth, each steady in itself
        run_with(tmp_path / f"run-{day}", {1.0: ""}, change=offset, started=f"2026-05-0{day}T10:00:00.000+00:00")
    found = compared(tmp_path / "run-7", tmp_path / "run-8")
    assert found.verdicts[0].word == "CANNOT TELL"
    assert any("the spread between runs is estimated from 8 runs" in note for note in found.notes)
    elsewhere = run_with(tmp_path / "other/run", {1.0: ""}, change=0.1)
    assert compared(tmp_path / "run-7", elsewhere).verdicts[0].word == "SLOWER"


def test_the_order_in_which_meters_were_named_makes_no_other_case(tmp_path):
    orders = [("latency", "operators"), ("operators", "latency")]
    for day in range(1, 9):
        meters, started = orders[day % 2], f"2026-05-0{day}T10:00:00.000+00:00"
        run_with(tmp_path / f"run-{day}", {1.0: "", 2.0: ""}, meters=meters, started=started)
    found = compared(tmp_path / "run-7", tmp_path / "run-8")
    assert [v.word for v in found.verdicts] == ["SAME", "SAME"]
    assert not [note for note in found.notes if note.startswith(("different", "only in"))]
    assert any("the spread between runs is estimated from 8 runs" in note for note in found.notes)


def test_the_records_of_a_run_count_once_however_many_merged_runs_hold_them(tmp_path):
    folder = tmp_path / "runs"
    base = run_with(folder / "base", {1.0: ""}, started="2026-05-01T10:00:00.000+00:00")
    new = run_with(folder / "new", {1.0: ""}, change=0.03, started="2026-05-02T10:00:00.000+00:00")
    for number in range(4):
        other = run_with(tmp_path / f"other-{number}", {2.0 + number: ""}, started="2026-05-03T10:00:00.000+00:00")
        merge([base, other], folder / f"merged-{number}")
    found = compared(base, new)
    assert found.verdicts[0].word == "CANNOT TELL"
    assert any("this alone can cause a difference of up to 5%" in note for note in found.notes)


def test_two_runs_that_were_merged_are_still_two_times(tmp_path):
    base = run_with(tmp_path / "a/base", {1.0: ""})
    new = run_with(tmp_path / "b/new", {1.0: ""}, change=0.03, name="b")
    merge([base, new], tmp_path / "both")
    found = compare(*(select(f"{tmp_path / 'both'}@model={name}") for name in ("fake", "b")), {"latency": 0.05})
    assert (found.verdicts[0].word, found.verdicts[0].paired) == ("CANNOT TELL", False)
    assert any("the two runs were measured at different times" in note for note in found.notes)


def test_code_is_not_compared_with_itself(tmp_path):
    code = {"digest": "d", "versions": {"torch": "2.0"}, "modules": {"net": "working folder"}}
    with RunWriter(tmp_path / "run") as store:
        store.begin("")
        for number, variant in enumerate(("baseline", "this")):
            environment = Environment(facts={"python": "3.11", "code": code, "variant": variant})
            latency = Measurement.of(metrics.LATENCY, [1.0])
            record = make_record(
                make_case(variant=variant), latency, sequence=number, environment=environment.fingerprint
            )
            store.append(record, environment)
    base, new = (select(f"{tmp_path}/run@variant={variant}") for variant in ("baseline", "this"))
    with pytest.raises(InputError, match="the same code: both import net from the current directory"):
        compare(base, new, {"latency": 0.05})
