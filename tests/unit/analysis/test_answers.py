"""The rules that say what a study found, on figures whose order is known."""

import math
from dataclasses import replace

import report_runs
from conftest import make_case, make_record

from speechmeter.analysis.answers import answers, fastest
from speechmeter.analysis.study import Contest, Setting, Study
from speechmeter.core import metrics
from speechmeter.core.types import Measurement

ROUNDS = (1.0, 1.02, 0.98)


def setting(name, time, seconds=1.0, batch=1, rounds=ROUNDS, **found):
    case = make_case(name, seconds=seconds, batch=batch)
    more = [Measurement.of(getattr(metrics, key.upper()), [value]) for key, value in found.items()]
    heard = Measurement.of(metrics.AUDIO_SECONDS, [seconds * batch])
    made = [
        make_record(case, Measurement.of(metrics.LATENCY, [time * scale]), heard, *more, round=at)
        for at, scale in enumerate(rounds)
    ]
    return Setting(name=name, model=name, size=(seconds, batch), rounds=made)


def found(study, rule):
    return [answer for answer in answers(study) if answer.rule == rule]


def test_the_fastest_is_named_with_its_speed_and_who_comes_next():
    study = Study(settings=(setting("slow", 0.5), setting("quick", 0.1), setting("middle", 0.2)))
    (answer,) = found(study, "fastest")
    assert (answer.names, answer.other, answer.of) == (("quick",), "middle", 3)
    assert math.isclose(answer.figure.value, 10, rel_tol=0.01) and answer.certain


def test_models_are_compared_at_the_longest_size_that_most_of_them_have():
    both = [setting(name, time * seconds, seconds) for name, time in (("a", 0.1), ("b", 0.2)) for seconds in (1.0, 5.0)]
    alone = setting("b", 0.01, 30.0)
    (answer,) = found(Study(settings=(*both, alone)), "fastest")
    assert answer.size == (5.0, 1) and answer.names == ("a",)


def test_two_that_intervals_do_not_distinguish_are_named_together():
    noisy = (1.0, 1.5, 0.7)
    (answer,) = found(Study(settings=(setting("a", 0.1, rounds=noisy), setting("b", 0.11, rounds=noisy))), "fastest")
    assert set(answer.names) == {"a", "b"} and len(answer.close) == 1


def test_one_round_is_never_certain():
    (answer,) = found(Study(settings=(setting("a", 0.1, rounds=(1.0,)), setting("b", 0.2, rounds=(1.0,)))), "fastest")
    assert answer.names == ("a",) and not answer.certain


def test_it_is_said_where_real_time_ends():
    grid = [setting("m", time, seconds) for seconds, time in ((1.0, 0.5), (5.0, 4.0), (10.0, 12.0), (20.0, 40.0))]
    (answer,) = found(Study(settings=tuple(grid)), "too slow")
    assert answer.size == (10.0, 1) and answer.slow == 2 and answer.of == 4
    assert math.isclose(answer.figure.value, 10 / 12, rel_tol=0.01)


def test_where_all_keep_up_the_slowest_case_says_how_much_is_left():
    (answer,) = found(Study(settings=(setting("a", 0.5, 1.0), setting("a", 1.0, 5.0))), "real time")
    assert answer.size == (1.0, 1) and math.isclose(answer.figure.value, 2, rel_tol=0.01)


def test_the_most_accurate_is_found_and_what_it_costs():
    groups = {}
    for record in report_runs.systems():
        groups.setdefault(record.case.subject.name, []).append(record)
    systems = tuple(Setting(name=name, model=name, size=("all", 1), rounds=own) for name, own in groups.items())
    (best,) = found(Study(settings=systems), "accuracy")
    assert best.names[0] == "exact" and best.figure.metric == metrics.WER
    (cost,) = found(Study(settings=systems), "cost of accuracy")
    assert cost.names == ("exact",) and cost.other == "quick" and math.isclose(cost.ratio, 10, rel_tol=0.01)


def test_the_fastest_loss_is_exact():
    pruned = setting("pruned", 0.001, loss_deviation=0.04)
    exact = [setting("slow", 0.02, loss_deviation=1e-7), setting("quick", 0.01, loss_deviation=5e-7)]
    contest = Contest(title="loss alone", settings=(pruned, *exact))
    (answer,) = found(Study(losses=(contest,)), "loss")
    assert answer.names == ("quick",) and answer.of == 2 and answer.where == "loss alone"
    (step,) = found(Study(steps=(replace(contest, title="whole step"),)), "step")
    assert step.where == "whole step"


def test_the_largest_module_is_the_largest_inside_those_that_hold_half_of_the_call():
    rounds = report_runs.training()
    (answer,) = found(Study(settings=(Setting(name="net", model="net", size=("all", 1), rounds=rounds),)), "module")
    # attention: 2 × 0.09 of 0.436 s; the layers hold 0.33 of it
    assert "attention" in answer.names[0] and math.isclose(answer.figure.value, 100 * 0.18 / 0.353, rel_tol=0.3)


def test_what_needs_the_least_memory_is_found_by_the_peak_of_the_process():
    study = Study(settings=(setting("a", 0.1, memory_cpu_total=2e9), setting("b", 0.2, memory_cpu_total=1e9)))
    (answer,) = found(study, "memory")
    assert answer.names == ("b",) and math.isclose(answer.figure.value, 1e9) and answer.other == "a"


def test_a_study_without_figures_has_no_answers():
    failed = make_record(make_case(), status="crashed", reason="gone")
    study = Study(settings=(Setting(name="m", model="m", size=(1.0, 1), rounds=[failed]),))
    assert answers(study) == [] and answers(Study()) == []


def test_a_rule_can_be_added():
    def rule(study):
        yield replace(next(fastest(study)), rule="mine")

    study = Study(settings=(setting("a", 0.1),))
    assert [answer.rule for answer in answers(study, [rule])] == ["mine"]
