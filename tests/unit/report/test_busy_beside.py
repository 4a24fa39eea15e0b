"""Real-time factors beside busy time: `CPU + CUDA` in one cell on a GPU, in every format; sizes in one unit."""

import csv
import io
import json

from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report import choose
from speechmeter.report.text import FORMATS

MIB = 2**20


def profiled(device="cuda", **axes):
    return make_record(
        make_case(device=device, meters=("latency", "split"), **axes),
        Measurement.of(metrics.AUDIO_SECONDS, [2.0]),
        Measurement.of(metrics.LATENCY, [1.0]),
        Measurement.of(metrics.TIME_BUSY, [0.5], scope="busy:cpu"),
        Measurement.of(metrics.TIME_BUSY, [0.25], scope="busy:gpu"),
    )


def test_a_cell_on_a_gpu_has_both_busy_times():
    (table,) = choose.tables([profiled()], "rtf", beside=True)
    assert [column.partition(" ")[2] for column in table.columns] == ["wall", "CPU + CUDA"]
    assert [cell.text(sci=True) for cell in table.rows[0].cells] == ["5.00E-01 (n=1)", "2.50E-01 + 1.25E-01"]


def test_both_figures_are_data_in_csv_and_json():
    tables = choose.tables([profiled()], "rtf", beside=True)
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](tables))))
    assert [(row["metric"], float(row["value"])) for row in rows[1:]] == [("rtf_cpu.v2", 0.25), ("rtf_gpu.v2", 0.125)]
    cell = json.loads(FORMATS["json"](tables))[0]["rows"][0]["cells"][1]
    assert [one["value"] for one in cell["figures"]] == [0.25, 0.125]


def test_without_a_word_a_run_that_was_profiled_shows_busy_time():
    first = choose.tables([profiled(device="cpu")], None)[0]
    assert [column.partition(" ")[2] for column in first.columns] == ["wall", "CPU"]


def test_sizes_of_one_grid_are_in_one_unit():
    records = [
        make_record(make_case(seconds=length), Measurement.of(metrics.MEMORY_CPU_PEAK, [size]))
        for length, size in ((1.0, 0.25 * MIB), (2.0, 2.0 * MIB))
    ]
    (table,) = choose.tables(records, "memory_cpu_peak")
    assert [row.cells[0].text() for row in table.rows] == ["0.250 MiB", "2.00 MiB"]
