"""Results of other tools as runs: equal figures, the tool's definitions, and nothing that is not on the lists."""

from __future__ import annotations

import gzip
import json
import math
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import foreign_results as results
import pytest

import speechmeter
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.stated import stated_metrics
from speechmeter.api import importing
from speechmeter.api.comparing import compare, select, usual_metrics
from speechmeter.api.importing import import_results
from speechmeter.api.pages import write_report
from speechmeter.api.rerunning import Again, rerun
from speechmeter.api.showing import shown
from speechmeter.core import metrics, stated
from speechmeter.core.errors import InputError
from speechmeter.core.types import Record
from speechmeter.store.foreign.recognise import read
from speechmeter.store.run_dir import RunDir


def _records(folder: Path, *files: Path) -> list[Record]:
    run = import_results(files, folder / "run", force=True)
    return RunDir.existing(run.path).records()


def _figure(records: list[Record], name: str, statistic: str = "geomean") -> Estimate:
    found = estimate(records, metrics.STATED[name], statistic=statistic)
    assert found is not None
    return found


def _written(path: Path) -> str:
    return "".join(one.read_text() for one in path.rglob("*") if one.is_file())


def test_vllm_summaries_are_carried_in_seconds(tmp_path: Path) -> None:
    records = _records(tmp_path, results.write(tmp_path / "a.json", results.vllm()))
    assert _figure(records, "vllm_ttft_stated").value == pytest.approx(0.3)
    assert _figure(records, "vllm_ttft_stated", "p50").value == pytest.approx(0.2)
    assert _figure(records, "vllm_rtfx_stated").value == 7.5
    held = records[0].find(metrics.STATED["vllm_ttft_stated"].id)
    assert held is not None and held.notes[stated.REQUESTS] == [0.1, 0.2, 0.6]
    assert records[0].case.subject.name == "tiny-asr" and records[0].case.axes["concurrency"] == 2


def test_vllm_zeros_in_place_of_values_are_unavailable(tmp_path: Path) -> None:
    records = _records(tmp_path, results.write(tmp_path / "a.json", results.vllm()))
    held = records[0].find(metrics.STATED["vllm_tpot_stated"].id)
    assert held is not None and not held.values and "writes if it has no value" in str(held.unavailable)


def test_several_results_of_one_case_are_its_rounds(tmp_path: Path) -> None:
    """`--append-result` writes a line each; the figure is their geometric mean, with an interval."""
    file = results.write(tmp_path / "a.json", results.vllm(rtfx=2.0), results.vllm(rtfx=8.0))
    found = _figure(_records(tmp_path, file), "vllm_rtfx_stated")
    assert found.value == pytest.approx(4.0) and found.rounds == 2 and found.low is not None


def test_requests_of_a_benchmark_with_failures_are_not_kept(tmp_path: Path) -> None:
    """vLLM lists a failed request as 0."""
    file = results.write(tmp_path / "a.json", results.vllm(failed=1, ttfts=[0.1, 0.2, 0.0]))
    held = _records(tmp_path, file)[0].find(metrics.STATED["vllm_ttft_stated"].id)
    assert held is not None and stated.REQUESTS not in held.notes


def test_guidellm_figures_have_the_intervals_of_the_file(tmp_path: Path) -> None:
    records = _records(tmp_path, results.write(tmp_path / "g.json", results.guidellm()))
    found = _figure(records, "guidellm_ttft_stated")
    assert (found.value, found.low, found.high) == pytest.approx((0.07, 0.06, 0.08))
    share = _figure(records, "guidellm_ttft_stated", "p95")
    assert share.value == pytest.approx(0.14) and share.low is None
    assert _figure(records, "guidellm_slo_share_stated").value == 75.0
    assert _figure(records, "guidellm_audio_per_s_stated").value == 12.0
    assert _figure(records, "guidellm_errored_stated").value == 1.0
    absent = records[0].find(metrics.STATED["guidellm_itl_stated"].id)
    assert absent is not None and absent.unavailable
    assert records[0].warnings == ("guidellm warns: generation_delay_ttft",)


def test_guidellm_of_version_1_names_its_model_in_args(tmp_path: Path) -> None:
    data = results.guidellm()
    del data["config"], data["benchmarks"][0]["config"]["backend"]
    file = results.write(tmp_path / "g.json", {**data, "args": {"model": "older"}})
    assert _records(tmp_path, file)[0].case.subject.name == "older"


def test_aiperf_units_are_read_and_unknown_ones_refused(tmp_path: Path) -> None:
    made = import_results([results.write(tmp_path / "a.json", results.aiperf())], tmp_path / "run")
    records = RunDir.existing(made.path).records()
    assert _figure(records, "aiperf_latency_stated").value == pytest.approx(5.0)
    assert _figure(records, "aiperf_latency_stated", "mean-sd").high == pytest.approx(5.1)
    assert _figure(records, "aiperf_rtfx_stated").value == 1.25
    assert metrics.STATED["aiperf_audio_stated"] not in stated_metrics(records)
    assert any("fortnights" in line for line in made.files[0].left_out)
    assert records[0].warnings == ("aiperf says that the benchmark is not complete",)


def test_a_warm_up_of_aiperf_is_not_the_phase_that_was_measured(tmp_path: Path) -> None:
    """Schema 1.3 names phases and has no kinds."""
    data = results.aiperf(schema_version="1.3")
    data["input_config"]["phases"] = [
        {"name": "warmup", "type": "concurrency", "exclude_from_results": True, "requests": 16, "concurrency": 1},
        {"name": "profiling", "type": "concurrency", "requests": 96, "concurrency": 2},
    ]
    (found,) = read(results.write(tmp_path / "a.json", data)).benchmarks
    assert found.input.startswith("96 requests") and found.axes == {"concurrency": 2}


def test_stt_benchmark_is_summarised_as_its_report_does(tmp_path: Path) -> None:
    records = _records(tmp_path, results.stt_benchmark(tmp_path / "results.db"))
    own = [record for record in records if record.case.subject.name == "deepgram nova"]
    assert _figure(own, "stt_benchmark_ttfs_stated").value == pytest.approx(0.4)
    # between the second and the third of three, 0.9 of the way: 0.4 + 0.9 * 0.2
    assert _figure(own, "stt_benchmark_ttfs_stated", "p95").value == pytest.approx(0.58)
    assert _figure(own, "stt_benchmark_errors_stated").value == 2
    assert _figure(own, "stt_benchmark_wer_stated").value == pytest.approx(10.0)
    assert _figure(own, "stt_benchmark_mean_wer_stated").value == pytest.approx(25.0)
    other = next(record for record in records if record.case.subject.name == "azure")
    held = other.find(metrics.STATED["stt_benchmark_ttfs_stated"].id)
    assert held is not None and held.unavailable


def test_prompts_keys_and_addresses_stay_behind(tmp_path: Path) -> None:
    files = [
        results.write(tmp_path / "v.json", results.vllm()),
        results.write(tmp_path / "g.json", results.guidellm()),
        results.write(tmp_path / "a.json", results.aiperf()),
        results.stt_benchmark(tmp_path / "s.db"),
    ]
    made = import_results(files, tmp_path / "run")
    assert results.SECRET not in _written(made.path)
    assert results.SECRET not in repr(made)
    assert all(one.left_out for one in made.files)


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    made = import_results([results.write(tmp_path / "v.json", results.vllm())], tmp_path / "run")
    said = " ".join(made.files[0].left_out)
    assert "generated_texts" in said and "region" in said and "mean_ttft_ms" not in said


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5.0, "12", True, [1], 1e300])
def test_a_figure_that_is_no_number_is_left_out_and_named(tmp_path: Path, value: Any) -> None:
    made = import_results([results.write(tmp_path / "v.json", results.vllm(mean_ttft_ms=value))], tmp_path / "run")
    records = RunDir.existing(made.path).records()
    assert metrics.STATED["vllm_ttft_stated"] not in stated_metrics(records)
    assert any(line.startswith("ttft_ms") for line in made.files[0].left_out)
    assert _figure(records, "vllm_rtfx_stated").value == 7.5


@pytest.mark.parametrize("make", [results.vllm, results.guidellm, results.aiperf])
def test_any_value_in_any_place_is_read_or_refused(tmp_path: Path, make: Callable[[], dict[str, Any]]) -> None:
    file = tmp_path / "x.json"
    for path in _places(make()):
        for odd in (None, -1, 10**400, "x" * 300, "\ud800\x1b[31m", [[]], {"a": [1]}, True):
            data = make()
            _put(data, path, odd)
            with suppress(InputError):
                found = read(results.write(file, data))
                for measurement in (m for one in found.benchmarks for m in one.measurements):
                    assert all(map(math.isfinite, measurement.values)), path


def _places(data: Any) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each value inside."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (key,)
        yield from ((key, *rest) for rest in _places(value))


def _put(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "x.json: the file is empty"),
        (b"[" * 100_000, "x.json: this is not JSON: it is nested too deeply"),
        (b'{\n "a": 1,\n "b": ', "line 3, column 7; the file may be truncated"),
        (b'{"a": 1}\n{"a": 1}\n{"a": ', "x.json: line 3: this is not JSON: Expecting value"),
        (b'{"rtfx": 1, "rtfx": 2}', "the key 'rtfx' appears twice in one object"),
        (b'{"a": ' + b"9" * 5000 + b"}", "this is not JSON: Exceeds the limit"),
        (gzip.compress(b" " * 20_000_000, mtime=0), "unpacks to more than 200 times its size"),
        (gzip.compress(b"{}", mtime=0)[:-9], "truncated or damaged"),
        (b'{"some": "object"}', "format is unknown"),
        (b'{"metadata": {"credit_issued_ns": 1}, "metrics": {}}', "profile_export_aiperf.json"),
        (b"SQLite format 3\x00" + b"\x00" * 100, "not a database of stt-benchmark"),
        (b"{\xff}", "x.json: not UTF-8 text at byte 1"),
    ],
)
def test_other_files_are_refused_in_words(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=said):
        import_results([file], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_directories_and_pipes_are_refused_in_words(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in ((tmp_path, "this is a directory"), (tmp_path / "pipe", "a pipe or a device"),
                       (tmp_path / ("x" * 300), "too long"), (tmp_path / "none", "No such file")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            import_results([path], tmp_path / "run")


def _left_out(path: Path) -> list[str]:
    return [line for line in read(path).left_out if not line.startswith(("texts", "prompts", "command"))]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mean_ttft_ms": -5.0}, "line 2: ttft_ms: mean is a value below 0"),
        ({"rtfx": -1.0}, "line 2: rtfx: a value below 0"),
        ({"rtfx": 10**400}, "line 2: rtfx: a value above 1e+15"),
        ({"rtfx": [1]}, "line 2: rtfx: a list is not a number"),
        ({"duration": 1e12}, "line 2: duration: a value above 1e+09"),
        ({"median_ttft_ms": 250.0}, "line 2: ttft_ms: p50 (250) is above p99 (200)"),
        ({"mean_ttft_ms": None}, "line 2: ttft_ms: it has no mean"),
        ({"completed": 2.5}, "line 2: ttft_ms, number of requests: 2.5 is not a whole number"),
        ({"ttfts": [0.1, 0.2]}, "line 2: ttfts: it has 2 values for 3 requests"),
        ({"ttfts": [0.1, None, 0.2]}, "line 2: ttfts[1]: it has no value"),
        ({"ttfts": [0.1, 0.2, -1]}, "line 2: ttfts[2]: a value below 0"),
        ({"ttfts": {"a": 1}}, "line 2: ttfts: not a list of at most 100,000 numbers"),
    ],
)
def test_what_cannot_be_a_figure_is_named_with_its_place(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    file = results.write(tmp_path / "v.json", results.vllm(), results.vllm(**change))
    assert said in _left_out(file)


def _changed(data: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    _put(data, path, to)
    return data


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ((), 5, "metrics.time_to_first_token_ms: not an object with figures"),
        (("successful", "percentiles"), [1], "metrics.time_to_first_token_ms: not an object with figures"),
        (("successful", "mean_ci"), {"lower": 90.0, "upper": 80.0},
         "metrics.time_to_first_token_ms, interval of mean: it does not contain the value"),
        (("successful", "mean_ci"), {"lower": None, "upper": 80.0},
         "metrics.time_to_first_token_ms, interval of mean: it does not contain the value"),
        (("successful", "count"), -1, "metrics.time_to_first_token_ms, number of requests: a value below 0"),
    ],
)  # fmt: skip
def test_a_bad_distribution_of_guidellm_is_named_with_its_place(
    tmp_path: Path, path: tuple[str, ...], value: Any, said: str
) -> None:
    data = _changed(results.guidellm(), "benchmarks", 0, "metrics", "time_to_first_token_ms", *path, to=value)
    assert f"benchmarks[0].{said}" in _left_out(results.write(tmp_path / "g.json", data))


def test_a_damaged_benchmark_and_a_newer_version_are_named(tmp_path: Path) -> None:
    data = _changed(results.guidellm(), "metadata", "version", to=3)
    data["benchmarks"].append({"metrics": 1})
    data["benchmarks"][0]["metrics"] |= {"request_totals": 5, "audio": {"seconds": [1]}}
    said = _left_out(results.write(tmp_path / "g.json", data))
    assert "benchmarks[1]: it has no metrics" in said
    assert (
        "metadata.version: the file has version 3 of its format, but Speechmeter knows 1 and 2; figures may be missing"
        in said
    )
    assert "benchmarks[0].metrics.request_totals: not an object" in said
    assert "benchmarks[0].metrics.audio.seconds: not an object" in said
    newer = results.aiperf(schema_version="2.0", rtfx=7, request_latency={"avg": 5.0, "p50": 5.0})
    said = _left_out(results.write(tmp_path / "a.json", newer))
    assert any(line.startswith("schema_version: the file has version 2.0 of its format, but") for line in said)
    assert {"rtfx: not an object with a unit and a value", "request_latency: it has no unit"} <= set(said)


def test_a_result_of_another_tool_among_lines_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is not a result of vllm bench serve") as refused:
        read(results.write(tmp_path / "v.json", results.vllm(), {"a": 1}))
    assert str(refused.value).startswith(f"{tmp_path / 'v.json'}: line 2")


def test_a_list_of_results_is_read_as_lines_are(tmp_path: Path) -> None:
    """`summary.json` of `vllm bench sweep`."""
    found = read(results.write(tmp_path / "summary.json", [results.vllm(), results.vllm(rtfx=-1)]))
    assert len(found.benchmarks) == 2 and "item 2: rtfx: a value below 0" in found.left_out


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE wer_metrics SET wer = NULL WHERE sample_id = 'b'", "wer_metrics, row 2: it has an empty cell"),
        ("UPDATE wer_metrics SET insertions = 'x'", "wer_metrics, row 1: 'x' is not a number"),
        ("UPDATE results SET ttfb_seconds = -1 WHERE sample_id = 'b'", "ttfb_seconds, row 2: a value below 0"),
    ],
)
def test_a_bad_row_of_stt_benchmark_is_named_with_its_service(tmp_path: Path, sql: str, said: str) -> None:
    path = results.stt_benchmark(tmp_path / "s.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute(sql)
        database.commit()
    assert f"deepgram nova: {said}" in _left_out(path)


def test_a_failed_import_leaves_an_older_run_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = results.write(tmp_path / "v.json", results.vllm())
    before = _written(import_results([file], tmp_path / "run").path)
    monkeypatch.setattr(importing, "_case", lambda found, benchmark: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        import_results([file], tmp_path / "run", force=True)
    assert _written(tmp_path / "run") == before


def test_a_file_without_a_figure_is_refused(tmp_path: Path) -> None:
    bare = {key: results.vllm()[key] for key in ("endpoint_type", "model_id", "num_prompts", "request_rate")}
    with pytest.raises(InputError, match="no figure"):
        import_results([results.write(tmp_path / "v.json", bare)], tmp_path / "run")


def test_an_existing_run_is_replaced_only_with_force(tmp_path: Path) -> None:
    file = results.write(tmp_path / "v.json", results.vllm())
    import_results([file], tmp_path / "run")
    with pytest.raises(InputError, match="already exists"):
        import_results([file], tmp_path / "run")
    assert import_results([file], tmp_path / "run", force=True).files[0].figures > 5


def test_tools_stand_side_by_side_with_their_definitions(tmp_path: Path) -> None:
    files = [results.write(tmp_path / "v.json", results.vllm()), results.write(tmp_path / "g.json", results.guidellm())]
    run = import_results(files, tmp_path / "run").path
    table = next(one for one in shown(run).tables if one.title == "time to first token")
    assert [row.labels[0] for row in table.rows] == ["TTFT (vLLM)", "TTFT (guidellm)"]
    assert table.rows[1].cells[0].text() == "70.0 ms [60.0 ms, 80.0 ms]"
    assert any(
        note.startswith("vllm_ttft_stated.v1 [s]: time from the start of the POST request") for note in table.notes
    )
    assert any("different definitions" in note for note in table.notes)


def test_two_tools_are_never_compared_and_one_tool_is(tmp_path: Path) -> None:
    vllm = import_results([results.write(tmp_path / "v.json", results.vllm())], tmp_path / "v").path
    other = import_results([results.write(tmp_path / "g.json", results.guidellm())], tmp_path / "g").path
    with pytest.raises(InputError, match="different tools"):
        usual_metrics(select(str(vllm)), select(str(other)))
    found = compare(vllm, vllm, usual_metrics(select(str(vllm)), select(str(vllm))))
    assert {one.word for one in found.verdicts} == {"CANNOT TELL"}
    assert any(note.startswith("vllm_rtfx_stated.v1") for note in found.notes)


def test_page_and_methods_say_who_measured(tmp_path: Path) -> None:
    run = import_results([results.write(tmp_path / "g.json", results.guidellm())], tmp_path / "run").path
    text = shown(run, "methods").text
    assert "measured with guidellm 0.8.1, not with Speechmeter" in " ".join(text.split())
    write_report([str(run)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "guidellm_ttft_stated.v1" in page
    assert "# measured with guidellm, and imported" in page and "speechmeter run --" not in page
    assert speechmeter.load(run).frame("guidellm_ttft_stated")["low"][0] == pytest.approx(0.06)


def test_an_imported_case_cannot_be_measured_again(tmp_path: Path) -> None:
    run = import_results([results.write(tmp_path / "g.json", results.guidellm())], tmp_path / "run").path
    case = RunDir.existing(run).records()[0].case
    with pytest.raises(InputError, match="measured with guidellm"):
        rerun(select(str(run)), case.id, Again())


@pytest.mark.parametrize(("metric", "said"), [("rtf", "measured with other tools"), ("imported", "")])
def test_what_the_tool_did_not_measure_is_refused(tmp_path: Path, metric: str, said: str) -> None:
    run = import_results([results.write(tmp_path / "g.json", results.guidellm())], tmp_path / "run").path
    if said:
        with pytest.raises(InputError, match=said):
            shown(run, metric)
    else:
        assert shown(run, metric).tables


def test_a_stored_note_of_another_shape_is_no_record(tmp_path: Path) -> None:
    """A run may come from a stranger: what `estimate` unpacks is checked on reading."""
    run = import_results([results.write(tmp_path / "g.json", results.guidellm())], tmp_path / "run").path
    line = json.loads((run / "records.jsonl").read_text())
    line["measurements"][0]["notes"][stated.STATED] = {"mean": [1.0]}
    (run / "records.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(speechmeter.SpeechmeterError, match="mapping from a statistic"):
        RunDir.existing(run).records()
