"""The last lines of a run: what an example costs on average, by model and in total."""

from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report.lines import example_lines

MIB = 2**20


def measured(metric, values, scope="total", **notes):
    return Measurement.of(metric, values, scope=scope, notes=notes)


def cascade():
    """Two models, three examples: medians of the parts (1 s, 4 s) would add up to less than that of the whole (7 s)."""
    first, second = [1.0, 1.0, 4.0], [6.0, 4.0, 3.0]
    return make_record(
        make_case("pair"),
        measured(metrics.ITEMS, [1.0, 1.0, 1.0]),
        measured(metrics.LATENCY, [a + b for a, b in zip(first, second, strict=True)], batches=3),
        measured(metrics.LATENCY, first, "stage:a.model", clocked=True, batches=3),
        measured(metrics.LATENCY, [9.0, 9.0, 9.0], "stage:a→b", clocked=False, batches=3),
        measured(metrics.LATENCY, second, "stage:b.model", clocked=True, batches=3),
        measured(metrics.MEMORY_CPU_PEAK, [1.0 * MIB] * 3, "stage:a.model", batches=3),
        measured(metrics.MEMORY_CPU_PEAK, [3.0 * MIB] * 3, "stage:b.model", batches=3),
        measured(metrics.MEMORY_WEIGHTS, [4.0 * MIB], "stage:a.model"),
        measured(metrics.MEMORY_WEIGHTS, [7.0 * MIB], "stage:b.model"),
        measured(metrics.MEMORY_CPU_TOTAL, [90.0 * MIB, 100.0 * MIB, 110.0 * MIB], batches=3),
        measured(metrics.FLOPS, [5e6, 7e6, 9e6]),
        measured(metrics.FLOPS, [1e6, 2e6, 3e6], "stage:a.model", clocked=True),
        measured(metrics.FLOPS, [4e6, 5e6, 6e6], "stage:b.model", clocked=True),
    )


def test_means_of_the_models_add_up_to_the_total_and_memory_is_the_largest():
    heading, *lines = example_lines([cascade()])
    assert heading.endswith(": mean over 3 examples")
    assert lines == [
        "  a: run time 2.00 s, memory 5.00 MiB, FLOPs 2.00 MFLOP",
        "  b: run time 4.33 s, memory 10.0 MiB, FLOPs 5.00 MFLOP",
        "  total: run time 6.33 s, memory 10.0 MiB, FLOPs 7.00 MFLOP, peak of the process 100 MiB",
    ]


def test_a_dataset_fed_to_one_model_has_the_line_of_its_total():
    record = make_record(
        make_case("one"),
        measured(metrics.ITEMS, [1.0, 1.0]),
        measured(metrics.LATENCY, [1.0, 2.0], batches=2),
        Measurement.absent(metrics.FLOPS, "nothing to count"),
    )
    assert example_lines([record])[1:] == ["  total: run time 1.50 s, FLOPs unavailable"]


def test_a_grid_has_no_such_lines():
    record = make_record(make_case("grid"), measured(metrics.LATENCY, [1.0, 2.0]))
    assert example_lines([record]) == []
