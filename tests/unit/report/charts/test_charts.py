"""What charts say: cells without a figure, both intervals, blocks that fit, ratios."""

import json
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean, stdev

import pytest
import report_runs
from conftest import make_case, make_record

pytest.importorskip("altair", reason="altair is not installed: pip install 'speechmeter[report]'")

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.protocol import SearchProtocol
from speechmeter.core.types import Measurement
from speechmeter.report.charts import (
    against_latency,
    front,
    frontier,
    grid,
    lists,
    memory,
    models,
    modules,
    scaling,
    stages,
)
from speechmeter.report.charts.figure import MOST_LINES, names_axis, shortened, ticks, unit_of
from speechmeter.report.charts.marks import cut
from speechmeter.report.charts.style import CATEGORIES, TINTS, text_on
from speechmeter.report.page.study import figure_data
from speechmeter.report.plot import merged
from speechmeter.report.sources import Source, read_sources
from speechmeter.report.views import CHARTS

EXAMPLES = Path(__file__).parents[4] / "examples" / "runs"


def source(records, **fields):
    return Source(name="run", host="desk", records=tuple(records), environments={}, **fields)


def test_a_cell_that_ran_out_of_memory_is_drawn_as_such():
    rows = next(grid.figures(source(report_runs.grid("alpha")))).rows
    assert {(row["row"], row["column"]): row["text"] for row in rows}["5 s", "4"] == "oom"
    (gap,) = [row for row in rows if row.get("word")]
    assert gap["why"] == "needs 30 GiB" and "value" not in gap


def test_shades_go_from_the_least_to_the_most():
    rows = [row for row in next(grid.figures(source(report_runs.grid("alpha")))).rows if "value" in row]
    ordered = sorted(rows, key=lambda row: row["value"])
    assert ordered[0]["shade"] == 0 and ordered[-1]["shade"] == 1


def test_a_single_record_gives_a_single_cell():
    records = report_runs.grid("alpha")[:1]
    (rtf, memory_grid) = list(grid.figures(source(records)))
    assert len(rtf.rows) == len(memory_grid.rows) == 1
    assert rtf.title == "alpha: real-time factor 0.0201, faster than real time"
    assert rtf.rows[0]["interval"] == ""


def test_models_are_side_by_side_where_they_share_a_batch():
    made = list(scaling.figures(source([*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)])))
    assert made[0].title == "alpha is fastest at every length. Latency against length of audio, batch 1"
    assert {row["line"] for row in made[0].rows} == {"alpha", "beta"}


def timed(name, seconds, samples, *, batch=1, rounds=1, parameters=1e6, **axes):
    """Rounds of one case, with these samples in each; parameters, and FLOPs that grow with the input."""
    case = make_case(name, seconds=seconds, batch=batch, meters=("latency", "parameters", "flops"), **axes)
    held = [
        Measurement.of(metrics.LATENCY, samples),
        Measurement.of(metrics.PARAMETERS, [parameters]),
        Measurement.of(metrics.FLOPS, [1e9 * seconds * batch]),
    ]
    return [make_record(case, *held, round=round, sequence=round) for round in range(rounds)]


def test_the_plot_of_scaling_is_one_chart_with_all_models():
    sizes = [(seconds, batch) for seconds in (1.0, 2.0) for batch in (1, 4)]
    records = [r for name in ("alpha", "beta") for s, b in sizes for r in timed(name, s, [0.1, 0.2], batch=b)]
    (figure,) = scaling.plotted(source(records))
    assert figure.title == "Latency against length of audio, batch 1"  # they are equal: nobody is fastest
    assert {(row["line"], row["seconds"]) for row in figure.rows} == set(product(("alpha", "beta"), (1.0, 2.0)))
    (other,) = scaling.plotted(source(records), "batch", metrics.FLOPS)
    assert other.title == "FLOPs against batch size, 1 s"
    assert {row["batch"]: row["value"] for row in other.rows} == {1: 1e9, 4: 4e9}


def test_one_model_has_a_line_for_each_value_of_the_other_axis():
    records = [r for s in (1.0, 2.0) for b in (1, 4) for r in timed("alpha", s, [0.1, 0.2], batch=b)]
    (figure,) = scaling.plotted(source(records))
    assert figure.title == "Latency against length of audio: alpha"
    assert {row["line"] for row in figure.rows} == {"batch 1", "batch 4"}
    (figure,) = scaling.plotted(source(records), "batch")
    assert {row["line"] for row in figure.rows} == {"1 s", "2 s"}


def test_of_one_round_the_bar_is_the_standard_deviation_of_its_samples():
    samples = [0.1, 0.2, 0.6]
    (figure,) = scaling.plotted(source([*timed("a", 1.0, samples), *timed("a", 2.0, samples)]))
    row, mean, sd = figure.rows[0], fmean(samples), stdev(samples)
    assert (row["value"], row["low"], row["high"]) == pytest.approx((mean, mean - sd, mean + sd), rel=1e-5)
    assert "With one round, points and bars are mean ± standard deviation of 3 samples" in figure.caption
    assert figure.caveats[0] == "with one round, points and bars are mean ± standard deviation of 3 samples"


def test_of_several_rounds_the_bar_is_the_interval():
    records = [*timed("a", 1.0, [0.1, 0.3], rounds=2), *timed("a", 2.0, [0.2], rounds=3), *timed("a", 4.0, [0.2])]
    (figure,) = scaling.plotted(source(records))
    assert figure.rows[0]["value"] == pytest.approx(0.2)  # the median of a round, not a mean of all
    assert figure.rows[2]["low"] is None
    bars = "bars are 95 % intervals over 2 to 3 rounds; a point without a bar has a single sample"
    assert figure.caveats[0] == bars


def test_a_bar_to_zero_keeps_the_axis_logarithmic_and_is_told():
    records = [*timed("a", 1.0, [1e-4, 1e-4, 9e-3]), *timed("a", 2.0, [0.1, 0.1, 0.1]), *timed("a", 4.0, [5.0, 5.0])]
    (figure,) = scaling.plotted(source(records))
    assert (
        "a bar that touches the bottom edge extends to 0 or below, which a logarithmic axis cannot show"
        in figure.caveats
    )
    assert 0 < figure.rows[0]["low"] < figure.rows[0]["value"]
    assert '"type": "log"' in json.dumps(figure.spec)


def test_a_case_that_failed_is_named_in_the_plot():
    failed = make_record(make_case("a", seconds=4.0), status="oom", reason="needs 30 GiB")
    (figure,) = scaling.plotted(source([*timed("a", 1.0, [0.1]), *timed("a", 2.0, [0.2]), failed]))
    assert "not drawn: a at seconds 4: oom" in figure.caveats


def test_machines_have_lines_of_their_own_in_one_plot():
    records = [*timed("a", 1.0, [0.1]), *timed("a", 2.0, [0.2])]
    laptop, board = (replace(source(records), name=name) for name in ("laptop", "board"))
    (figure,) = scaling.plotted(merged([laptop, board]))
    assert {row["line"] for row in figure.rows} == {"laptop", "board"}


def test_lines_are_moved_sideways_within_the_gap_to_the_next_size():
    records = [r for name in "abcde" for s in (1.0, 2.0, 32.0) for r in timed(name, s, [0.1, 0.2])]
    (figure,) = scaling.plotted(source(records))
    places = {row["seconds"]: [] for row in figure.rows}
    for row in figure.rows:
        places[row["seconds"]].append(row["position"])
    assert max(places[1.0]) < min(places[2.0]) and max(places[2.0]) < min(places[32.0])
    assert all(len(set(those)) == 5 for those in places.values())
    assert places[2.0][2] == pytest.approx(2.0)  # the one in the middle stays


def test_more_lines_than_can_be_followed_are_refused():
    records = [r for n in range(17) for s in (1.0, 2.0) for r in timed(f"model-{n}", s, [0.1])]
    with pytest.raises(InputError, match="17 lines are too many for one chart; choose some"):
        scaling.plotted(source(records))


def test_twelve_lines_differ_in_colour_or_shape():
    records = [r for n in range(12) for s in (1.0, 2.0) for r in timed(f"model-{n}", s, [0.1])]
    (figure,) = scaling.plotted(source(records))
    points = next(layer for layer in figure.spec["layer"] if "shape" in layer["encoding"])["encoding"]["shape"]["scale"]
    pairs = [(place % len(CATEGORIES), shape) for place, shape in enumerate(points["range"])]
    assert len(points["domain"]) == len(set(pairs)) == 12


def test_parameters_and_flops_are_drawn_against_latency_with_every_model_named():
    models = {"front-end": 0.0, "small": 2e6, "large": 9e7, "twin": 9e7}
    records = [r for n, size in models.items() for s in (1.0, 2.0) for r in timed(n, s, [s, 2 * s], parameters=size)]
    made = against_latency.figures_on_paper(source(records))
    assert [figure.title for figure in made] == ["Latency against parameters", "Latency against FLOPs"]
    assert {row.get("name") for row in made[0].rows} == {None, *models}
    for figure in made:
        assert {row["model"] for row in figure.rows} == {*models}
        assert {row["input"] for row in figure.rows} == {"1 s × 1", "2 s × 1"}
    sized = {(row["model"], row["input"]): (row["size"], row["value"]) for row in made[0].rows}
    assert sized["large", "2 s × 1"] == (9e7, 3.0)
    places = ("input", "align", "right", "down")
    names = {row["name"]: [row[place] for place in places] for row in made[0].rows if "name" in row}
    assert names["large"] != names["twin"]  # their points are the same
    assert '"symlog"' in json.dumps(made[0].spec)


def test_names_that_would_be_on_each_other_are_in_a_legend():
    records = [
        r for n in range(8) for r in timed(f"a-model-of-long-name-{n}", 1.0, [1.0 + n / 100], parameters=1e6 + n)
    ]
    records += timed("far", 1.0, [50.0], parameters=9e8)
    figure = against_latency.figures_on_paper(source(records))[0]
    assert not any("name" in row for row in figure.rows)
    alone = against_latency.figures_on_paper(source(records[6:]))[0]
    assert [row["name"] for row in alone.rows] == ["a-model-of-long-na…", "a-model-of-long-na…", "far"]


def test_of_one_size_the_bars_are_drawn_and_the_title_says_which():
    records = [*timed("a", 1.0, [0.1, 0.2], parameters=1e6), *timed("b", 1.0, [0.3, 0.5], parameters=2e6)]
    figure = against_latency.figures_on_paper(source(records))[0]
    finding = "a has the fewest parameters and the lowest latency (one round)"
    assert figure.title == f"{finding}. Latency against parameters, 1 s × 1"
    assert figure.rows[0]["low"] == pytest.approx(0.15 - stdev([0.1, 0.2]), rel=1e-5)
    assert "mean ± standard deviation of 2 samples" in figure.caption


def test_on_the_page_a_point_is_the_figure_of_its_table():
    records = [*timed("a", 1.0, [0.1, 0.2, 0.9], parameters=1e6), *timed("b", 1.0, [0.3], parameters=2e6)]
    figure = against_latency.figures(source(records))[0]
    assert figure.rows[0]["value"] == 0.2 and figure.rows[0]["low"] is None


def test_cold_start_has_three_figures_a_case():
    (figure,) = lists.cold_start(source(report_runs.grid("alpha")))
    assert [row["series"] for row in figure.rows[:3]] == ["load", "first call", "steady call"]
    assert figure.rows[0]["value"] == 1.5


def test_the_only_line_of_cold_start_has_the_name_of_its_model():
    (figure,) = lists.cold_start(source(report_runs.grid("alpha")[:1]))
    assert {row["label"] for row in figure.rows} == {"alpha"}


def test_long_names_of_lines_are_in_two_lines_of_text():
    names = ["optimized-transducer · part loss", "k2 · part step", "a-name-that-is-long-but-has-one-part-only"]
    split = json.loads(names_axis(names).labelExpr.partition("[datum")[0])
    assert split == {names[0]: ["optimized-transducer", "part loss"], names[1]: ["k2", "part step"]}
    assert names_axis(names).labelOverlap is False  # no name is left out because the next one is near
    assert "labelExpr" not in names_axis(names[1:]).to_dict()


def test_energy_is_per_hour_of_audio():
    (figure,) = lists.energy(source(report_runs.grid("alpha")))
    first = next(row for row in figure.rows if row["label"].startswith("1 s × 1") and row["series"] == "net of idle")
    mean_time = 0.02 * (1.0 * 1.04 * 0.98) ** (1 / 3)
    assert first["value"] == pytest.approx(mean_time * 40 * 3600, rel=1e-4)


def test_without_a_sensor_there_is_no_picture_of_energy():
    assert lists.energy(source(report_runs.systems())) == []


def test_stages_of_a_case_make_up_its_latency():
    (figure,) = stages.figures(source(report_runs.grid("alpha")))
    parts = {row["series"]: row["value"] for row in figure.rows if row["label"] == "1 s × 1"}
    assert parts["features"] / parts["model"] == pytest.approx(1 / 9, rel=1e-4)


def test_the_front_marks_who_is_dominated_and_claims_nothing_where_intervals_overlap():
    (figure,) = front.figures(source(report_runs.systems()))
    standing = {row["label"]: row["standing"] for row in figure.rows}
    assert standing == {
        "exact": "on the front", "quick": "not resolvable", "beaten": "dominated", "alike": "not resolvable",
    }  # fmt: skip
    for row in figure.rows:
        assert row["low"] < row["value"] < row["high"] and row["cost_low"] < row["cost_value"] < row["cost_high"]


def test_losses_are_ordered_by_time_and_absent_ones_named():
    made = lists.losses(source(report_runs.losses()))
    assert [figure.title for figure in made][:2] == [
        "ours is fastest: 2.01 ms ±8%. Loss alone: latency",
        "ours has the lowest latency / floor: 1.61 ±8%. Loss alone",
    ]
    assert [row["label"] for row in made[0].rows] == ["ours", "other", "absent"]
    assert made[0].rows[2]["word"] == "unavailable"


def test_a_ranking_names_the_losses_that_are_not_exact():
    (example,) = read_sources([str(EXAMPLES / "h200-losses")])
    alone, *_, step = [one for one in lists.losses(example) if metrics.LATENCY in one.definitions]
    assert "not exact: ours-pruned, ours-pruned-joint, fast-rnnt-pruned and k2-pruned" in step.caption
    assert "not exact" not in alone.caption


def test_a_loss_alone_is_no_ranking():
    alone = [record for record in report_runs.losses() if record.status == "ok"][:1]
    made = lists.losses(source(alone))
    assert made and all(figure.trivial and "first" not in figure.caption for figure in made)


def test_blocks_of_modules_lie_inside_their_parents_and_not_on_each_other():
    (figure,) = modules.figures(source(report_runs.training()))
    by_depth = {}
    for row in figure.rows:
        by_depth.setdefault(row["depth"], []).append(row)
    assert len(by_depth) > 2
    for depth, rows in by_depth.items():
        ordered = sorted(rows, key=lambda row: row["start"])
        assert all(second["start"] >= first["end"] - 1e-3 for first, second in pairwise(ordered))
        for row in rows if depth else ():
            assert any(p["start"] - 1e-3 <= row["start"] and row["end"] <= p["end"] + 1e-3 for p in by_depth[depth - 1])


def test_a_block_shows_its_whole_name_or_none():
    (figure,) = modules.figures(source(report_runs.training()))
    assert all(row["label"] == "" or row["name"].endswith(row["label"]) for row in figure.rows)
    assert not any(row["label"].isdigit() for row in figure.rows)
    names = next(layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "text")
    assert "datum.wide" in names["mark"]["text"]["expr"]


def test_shares_of_modules_are_those_of_the_times_put_in():
    (figure,) = modules.figures(source(report_runs.training()))
    forward, backward = 0.115, 0.258
    wide = {(row["name"], row["way"]): row["end"] - row["start"] for row in figure.rows}
    assert wide["forward", "forward"] == pytest.approx(100 * forward / (forward + backward), rel=1e-3)
    assert wide["net.layers.*.attention", "backward"] == pytest.approx(100 * 0.12 / (forward + backward), rel=1e-3)


def test_memory_is_drawn_from_the_artifact_and_a_broken_one_is_passed_over(tmp_path):
    runs = report_runs.full(tmp_path)
    (training,) = read_sources([str(runs[4])])
    line, held = memory.figures(training)
    assert max(row["value"] for row in line.rows) == pytest.approx(10**9 / 2**20, rel=1e-4)
    assert line.title.startswith("Memory peaks at 858 MiB, 200 ms into the step. ")
    assert held.rows[0]["label"] == "aten::bmm · 0.attention"
    next(runs[4].glob("artifacts/*/memory.json")).write_text("{")
    assert list(memory.figures(training)) == []


def test_machines_stand_side_by_side_with_their_ratio(tmp_path):
    (figure,) = lists.machines(read_sources(map(str, report_runs.full(tmp_path)[:2])))
    assert [row["series"] for row in figure.rows[:2]] == ["Some CPU 3000", "NVIDIA H200"]
    assert figure.rows[1]["ratio"].startswith("0.05 [") and figure.rows[1]["ratio"].endswith("FASTER")
    assert figure.rows[0]["ratio"] == "1"


def test_a_long_list_is_cut_and_says_so_without_looking_at_the_rest():
    looked = []

    def rows():
        for place in range(1000):
            looked.append(place)
            yield {"label": f"case {place}"}

    kept, told = cut(rows())
    assert len(kept) == MOST_LINES and "first 40" in told and len(looked) == MOST_LINES + 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 9], [1, 2, 5, 10]),
        ([0.001, 0.5], [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]),
        ([1e-6, 10], [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10]),
    ],
)
def test_ticks_are_round_and_few(values, expected):
    assert ticks(values) == pytest.approx(expected)


def test_memory_is_told_in_the_unit_of_the_largest():
    unit = unit_of(metrics.MEMORY_CPU_PEAK, [5e6, 3e9])
    assert unit.heading == "peak memory growth [GiB]" and unit.factor == 2**30


def test_labels_lose_what_all_of_them_have():
    labels = {"a": "one · cpu · 1 s × 1", "b": "two · cpu · 1 s × 4"}
    assert shortened(labels) == {"a": "one · 1 s × 1", "b": "two · 1 s × 4"}
    assert shortened({"a": "one · cpu"}) == {"a": "one · cpu"}


@pytest.mark.parametrize("colour", [*CATEGORIES, *TINTS])
def test_text_on_a_colour_has_a_contrast_of_at_least_four_and_a_half(colour):
    def luminance(hexadecimal):
        parts = [int(hexadecimal[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted([luminance(colour), luminance(text_on(colour))])
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_nothing_is_drawn_of_a_case_without_figures():
    records = [make_record(make_case(), status="crashed", reason="gone")]
    of_a_source = [chart for chart in CHARTS.values() if not chart.together]
    assert [figure for chart in of_a_source for figure in chart.function(page=True)(source(records))] == []
    assert lists.machines([source(records)]) == []


def test_one_round_has_no_interval_to_draw():
    record = make_record(
        make_case(), Measurement.of(metrics.LATENCY, [0.1]), Measurement.of(metrics.LATENCY_LOAD, [1.0])
    )
    (figure,) = lists.cold_start(source([record]))
    assert all(layer["mark"]["type"] != "rule" for layer in figure.spec["layer"])


def test_too_many_systems_are_drawn_and_not_compared(monkeypatch):
    monkeypatch.setattr(front, "MOST_SYSTEMS", 3)
    (figure,) = front.figures(source(report_runs.systems()))
    assert len(figure.rows) == 4 and {row["standing"] for row in figure.rows} == {"not resolvable"}
    assert "drawn, but not compared" in figure.caption


def test_a_scatter_of_some_cases_says_so(monkeypatch):
    monkeypatch.setattr(against_latency, "_MOST_POINTS", 2)
    made = {figure.title: figure for figure in lists.arithmetic(source(report_runs.grid("beta")))}
    assert len(made["Latency against FLOPs"].rows) == 2
    assert made["Latency against FLOPs"].caption.endswith("Of 4 cases the first 2.")


def test_the_frontier_reaches_from_what_fits_to_what_does_not_and_names_what_nothing_fits_at():
    (made,) = frontier.figures(source(report_runs.search()))
    rows = {(row["line"], row["seconds"]): (row["value"], row["high"], row["text"]) for row in made.rows}
    assert rows["base", 1.0] == (256, None, "≥ 256")
    assert rows["base", 30.0] == (64, 256, "64")
    assert rows["large", 30.0] == (None, None, "nothing fits")


def of_losses(names, vocabularies):
    protocol = SearchProtocol(find="max-batch")
    for name, vocabulary, batch in product(names, vocabularies, (8, 16)):
        case = make_case(name, batch=batch, vocabulary=vocabulary, protocol=protocol, seconds=None)
        fails = batch == 16 and vocabulary == 4096
        yield make_record(case, status="oom" if fails else "ok", reason="CUDA out of memory" if fails else "")


def test_lines_that_differ_in_one_setting_are_a_series_and_what_is_only_a_lower_bound_has_an_arrow():
    (made,) = frontier.figures(source(list(of_losses(("a", "b"), (500, 4096)))))
    rows = [(row["label"], row["series"], row["value"], row.get("open", False)) for row in made.rows]
    assert rows == [("a", "500", 16, True), ("a", "4096", 8, False), ("b", "500", 16, True), ("b", "4096", 8, False)]
    assert ("series", "vocabulary") in made.columns
    arrows = [layer for layer in made.spec["layer"] if layer["mark"].get("shape") == "triangle-right"]
    assert [layer["transform"] for layer in arrows] == [[{"filter": "datum.open"}]]


def test_a_line_that_ended_otherwise_is_named_below_the_chart():
    protocol = SearchProtocol(find="max-batch")
    ends = {("a", 8): "ok", ("a", 16): "crashed", ("b", 8): "error"}
    records = [
        make_record(make_case(name, batch=batch, protocol=protocol), status=s) for (name, batch), s in ends.items()
    ]
    (made,) = frontier.figures(source(records))
    assert [row["label"] for row in made.rows] == ["a"]
    assert made.title == "a: the largest batch is at least 8. Largest batch that fits at 1 s"
    assert made.caption.endswith(
        "a · cpu: batch 16 failed for another reason than memory: crashed. "
        "b · cpu: batch 8 failed for another reason than memory: error."
    )


def test_one_name_or_one_setting_is_no_series():
    for names, vocabularies in ((("a",), (500, 4096)), (("a", "b"), (4096,))):
        (made,) = frontier.figures(source(list(of_losses(names, vocabularies))))
        assert "series" not in made.rows[0] and len({row["label"] for row in made.rows}) == 2


def test_a_single_line_is_named_in_the_title():
    one = [record for record in report_runs.search() if record.case.subject.name == "base"]
    (made,) = frontier.figures(source(one))
    assert made.title == (
        "base: the largest batch is at least 256 at 1 s, 64 at 30 s. Largest batch that fits, by seconds"
    )


def test_a_grid_in_which_nothing_failed_has_no_frontier_to_draw():
    whole = [record for record in report_runs.grid("alpha") if record.status == "ok"]
    assert not list(frontier.figures(source(whole)))
    assert len(list(frontier.figures(source(report_runs.grid("alpha"))))) == 1


def of_rounds(name, times, **axes):
    """One case a round of which has each of these times."""
    return [make_record(make_case(name, **axes), Measurement.of(metrics.LATENCY, [time]), round=place, sequence=place)
            for place, time in enumerate(times)]  # fmt: skip


@pytest.mark.parametrize(
    ("others", "title"),
    [
        ([0.30, 0.31, 0.30], "a is fastest: 100 ms ±1%. Latency of 2 models, 5 s × 1"),
        ([0.09, 0.15, 0.10], "a and b are fastest: their intervals overlap. Latency of 2 models, 5 s × 1"),
        ([0.30], "a is fastest (some without interval): 100 ms ±1%. Latency of 2 models, 5 s × 1"),
    ],
)
def test_the_title_says_who_is_fastest_as_far_as_the_intervals_show(others, title):
    records = [*of_rounds("a", [0.1, 0.101, 0.1], seconds=5.0), *of_rounds("b", others, seconds=5.0)]
    (figure,) = models.figures(source(records))
    assert figure.title == title


def test_of_one_round_the_title_says_so_and_no_caption_promises_an_interval():
    records = [*of_rounds("a", [0.1], seconds=5.0), *of_rounds("b", [0.2], seconds=5.0)]
    (figure,) = models.figures(source(records))
    assert figure.title.startswith("a is fastest (one round): 100 ms. ")
    assert "interval" not in figure.caption


def test_models_are_compared_at_the_longest_input_that_most_have_and_the_others_are_named():
    records = [r for name in "ab" for s in (1.0, 5.0) for r in of_rounds(name, [0.1], seconds=s)]
    records += of_rounds("c", [0.3], seconds=2.0)
    (figure,) = models.figures(source(records))
    assert figure.title.endswith("Latency of 2 models, 5 s × 1")
    assert "measured only at other sizes: c" in figure.caption.lower()
    shown = figure_data(figure)  # once, though a picture in a file has it too
    assert "measured only at other sizes: c" in (figure.caveats or ()) and "other sizes" not in str(shown["caveats"])


def test_a_model_has_one_colour_in_all_charts_of_a_study():
    records = [*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)]
    study, part = source(records), source([r for r in records if r.case.subject.name == "beta"])
    domains = {}
    for name in ("models", "scaling", "cold-start", "energy", "parameters"):
        for figure in CHARTS[name].function(page=True)(study):
            colours = [layer["encoding"].get("color") for layer in figure.spec["layer"] if "encoding" in layer]
            domains[figure.title] = [one["scale"]["domain"] for one in colours if one]
    assert len(domains) > 6
    assert all(domain == ["alpha", "beta"] for found in domains.values() for domain in found)
    (alone,) = lists.cold_start(part)
    assert alone.spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["beta"]


def test_of_more_models_than_colours_a_list_has_no_colours():
    records = [r for n in range(9) for r in of_rounds(f"model-{n}", [0.1 + n], seconds=5.0)]
    (figure,) = models.figures(source(records))
    assert all("color" not in layer.get("encoding", {}) for layer in figure.spec["layer"])


def test_a_line_has_its_name_at_its_end_and_no_legend():
    made = next(iter(scaling.figures(source([*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)]))))
    assert "alpha" in json.dumps(made.spec["layer"][-1]["encoding"]["y"]["axis"]["labelExpr"])
    assert all(layer["encoding"].get("color", {}).get("legend") is None for layer in made.spec["layer"])


def test_a_wide_grid_has_its_batches_below_each_other():
    sizes = [n * 1100 for n in range(1, 17)]
    cases = [make_case("a", seconds=seconds, batch=batch) for seconds in (1.0, 10.0) for batch in sizes]
    records = [make_record(case, Measurement.of(metrics.MEMORY_CPU_PEAK, [1e9])) for case in cases]
    figure = list(grid.figures(source(records)))[-1]
    assert figure.spec["layer"][0]["encoding"]["y"]["field"] == "column"
    assert figure.title == "a: peak memory growth 954 MiB" and figure.rows[0]["number"] == "954"


def test_a_position_without_a_case_has_no_cell():
    cases = [make_case("a", seconds=1.0, batch=1), make_case("a", seconds=2.0, batch=2)]
    records = [make_record(case, Measurement.of(metrics.LATENCY, [0.1])) for case in cases]
    (figure,) = grid.figures(source(records), metrics.LATENCY)
    assert len(figure.rows) == 2 and "were not measured" in figure.caption


def test_an_axis_has_one_unit_in_its_title_where_that_can_be():
    assert unit_of(metrics.LATENCY, [0.02, 0.5]).heading == "latency [ms]"
    assert unit_of(metrics.LATENCY, [0.02, 5.0]).heading == "latency [s]"
    assert unit_of(metrics.LATENCY, [1e-6, 5.0]).heading == "latency"  # each label has its own
    assert unit_of(metrics.FLOPS, [3e9, 5e9]).heading == "FLOPs [GFLOP]"


def growing(times):
    """Three lengths in three rounds each, with these latencies."""
    return [
        make_record(make_case("m", seconds=float(2**place), batch=1), Measurement.of(metrics.LATENCY, [value]), round=r)
        for place, own in enumerate(times)
        for r, value in enumerate(own)
    ]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([(1.0, 1.1, 0.9), (2.0, 2.1, 1.9), (4.0, 4.1, 3.9)], True),
        ([(1.0, 9.0, 0.1), (2.0, 0.1, 9.0), (1.5, 8.0, 0.1)], False),
    ],
)
def test_growth_is_in_a_title_only_where_the_interval_shows_it(times, said):
    (figure,) = scaling.figures(source(growing(times)))
    assert ("grows with" in figure.title) is said


def test_notes_are_of_the_models_that_are_drawn():
    told = Measurement.of(metrics.ITEMS, [1.0], notes={"notes": ["random weights"]})
    away = make_record(make_case("elsewhere", seconds=64.0, batch=1), Measurement.of(metrics.LATENCY, [1.0]), told)
    records = [*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5), away]
    (figure,) = models.figures(source(records))
    assert figure.caveats == ("measured only at other sizes: elsewhere",)


def test_a_logarithmic_axis_is_said():
    records = [*report_runs.grid("alpha"), *report_runs.grid("beta", 2500.0)]
    (figure,) = models.figures(source(records))
    assert "the axis is logarithmic" in figure.caption.lower()
