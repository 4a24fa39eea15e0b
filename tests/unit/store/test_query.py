"""SQL over records: the declared columns, what a query may not do, and lines that are not as they should be."""

import csv
import json
import warnings

import pytest
from conftest import make_case, make_record

from speechmeter.api.querying import export, query
from speechmeter.api.runs import load
from speechmeter.core import metrics
from speechmeter.core.errors import InputError, SkippedLinesWarning, StoreError
from speechmeter.core.types import Environment, Measurement
from speechmeter.store.columns import TABLES
from speechmeter.store.run_dir import RunDir, RunWriter

pytest.importorskip("duckdb")

MACHINE = Environment(facts={"host": "pi", "cpu": "A76", "packages": {"torch": "2.6"}}, state={"load_1min": 0.5})


def measured(seconds, latencies_s, round=0, sequence=0, name="fake", **fields):
    return make_record(
        make_case(name, seconds=seconds, vocabulary=500),
        Measurement.of(metrics.LATENCY, latencies_s, source="clock", notes={"stop": "samples"}),
        Measurement.of(metrics.LATENCY, [9.0], scope="stage:model"),
        Measurement.of(metrics.AUDIO_SECONDS, [seconds]),
        Measurement.absent(metrics.ENERGY_GPU, "no sensor"),
        round=round,
        sequence=sequence,
        host="pi",
        environment=MACHINE.fingerprint,
        started="2026-11-15T09:34:24.160+00:00",
        wall_s=1.5,
        **fields,
    )


def write(path, *records):
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for record in records:
            store.append(record, MACHINE)
    return path


@pytest.fixture
def run(tmp_path):
    return write(
        tmp_path / "run",
        measured(1.0, [0.1, 0.2, 0.4], sequence=0),
        measured(2.0, [0.3], sequence=1),
        measured(1.0, [0.2], round=1, sequence=2),
        make_record(make_case("it's"), status="oom", reason="no memory", host="pi", sequence=3),
    )


def test_a_row_for_each_record_with_its_axes(run):
    rows = query(
        [run], "SELECT subject, seconds, threads, compile, round, status, reason FROM records ORDER BY sequence"
    )
    assert rows.columns == ("subject", "seconds", "threads", "compile", "round", "status", "reason")
    assert rows.rows[0] == ("fake", 1.0, 1, False, 0, "ok", "")
    assert rows.rows[3] == ("it's", 1.0, 1, False, 0, "oom", "no memory")
    assert query([run], "SELECT DISTINCT axes->>'vocabulary' FROM records WHERE status = 'ok'").rows == (("500",),)


def test_measurements_have_their_values_and_what_follows_from_them(run):
    sql = """SELECT values, n, median, minimum, maximum, source, notes FROM measurements
             WHERE metric = 'latency.v1' AND scope = 'total' AND seconds = 1 AND round = 0"""
    assert query([run], sql).rows == (([0.1, 0.2, 0.4], 3, 0.2, 0.1, 0.4, "clock", {"stop": "samples"}),)
    absent = query([run], "SELECT DISTINCT n, median, unavailable FROM measurements WHERE metric LIKE 'energy%'")
    assert absent.rows == ((0, None, "no sensor"),)


def test_estimates_are_the_figures_that_tables_show(run):
    sql = "SELECT seconds, value, low, high, rounds FROM estimates WHERE metric = '{}' AND scope = 'total' ORDER BY ALL"
    for name in ("latency", "rtf", "rtfx"):
        shown = [(axes["seconds"], e.value, e.low, e.high, e.rounds) for axes, e in load(run).estimates(name)]
        assert query([run], sql.format(metrics.find(name).id)).rows == tuple(sorted(shown))


def test_environments_join_by_their_fingerprint(run):
    sql = """SELECT DISTINCT cpu, packages->>'torch', state->>'load_1min'
             FROM records JOIN environments USING (run, environment)"""
    assert query([run], sql).rows == (("A76", "2.6", "0.5"),)


def test_several_runs_are_told_apart(tmp_path, run):
    write(tmp_path / "other/run", measured(1.0, [0.5]))
    found = query([run, tmp_path / "other/run"], "SELECT run, count(*) FROM records GROUP BY run ORDER BY run")
    assert dict(found.rows) == {str(run): 4, str(tmp_path / "other/run"): 1}


@pytest.mark.parametrize("table", list(TABLES))
def test_every_declared_column_is_there_with_its_type(run, table):
    found = query([run], f"SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{table}'")
    assert dict(found.rows) == {column.name: column.type for column in TABLES[table]}


def test_of_a_round_measured_again_the_last_counts(tmp_path):
    failed = make_record(make_case(), status="oom", host="pi")
    again = make_record(make_case(), Measurement.of(metrics.LATENCY, [1.0]), sequence=1, host="pi")
    path = write(tmp_path / "run", failed, again)
    assert query([path], "SELECT status FROM records").rows == (("ok",),)


def test_a_torn_last_line_is_left_out(run):
    with (run / "records.jsonl").open("a") as file:
        file.write('{"schema": 1, "id"')
    assert query([run], "SELECT count(*) FROM records").rows == ((4,),)


@pytest.mark.parametrize("table", ["records", "estimates"])
def test_a_broken_line_is_skipped_and_named(run, table):
    before = query([run], f"SELECT count(*) FROM {table}")
    with (run / "records.jsonl").open("a") as file:
        file.write("{nonsense}\n")
    with pytest.warns(SkippedLinesWarning, match=r"1 of 5 lines .*line 5: not a JSON line"):
        found = query([run], f"SELECT count(*) FROM {table}")
    assert found.rows == before.rows
    assert "line 5" in found.notes[0]


def test_a_line_of_a_newer_schema_is_refused(run):
    line = json.loads((run / "records.jsonl").read_text().splitlines()[0])
    with (run / "records.jsonl").open("a") as file:
        file.write(json.dumps({**line, "schema": 99}) + "\n")
    with pytest.raises(StoreError, match="schema 99"):
        query([run], "SELECT count(*) FROM records")


def test_a_run_without_records_is_empty(tmp_path):
    assert query([write(tmp_path / "run")], "SELECT count(*) FROM records").rows == ((0,),)
    assert query([tmp_path / "run"], "SELECT count(*) FROM estimates").rows == ((0,),)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("run[12]", "run1"), ("run*", "run1"), ("run?", "run1"), ("**", "run1"), ("{run1,run2}", "run1"),
        ("run[!9]", "run1"), ("it's [odd] *", "it's o x"), ("run\\1", "run1"), ("key=value", "run1"), ("~", "run1"),
    ],
)  # fmt: skip
def test_the_name_of_a_folder_is_no_pattern_and_no_column(tmp_path, name, other):
    write(tmp_path / other, measured(1.0, [0.1], name="of another run"))
    path = write(tmp_path / name, measured(1.0, [0.2], name="own"))
    (tmp_path / name / "nested").mkdir()
    for table in TABLES:
        assert query([path], f"SELECT DISTINCT run FROM {table}").rows == ((name,),)
        if table != "environments":
            assert query([path], f"SELECT DISTINCT subject FROM {table}").rows == (("own",),)
    with (path / "records.jsonl").open("a") as file:
        file.write('{"torn"')
    assert query([path], "SELECT DISTINCT subject FROM records").rows == (("own",),)


@pytest.mark.parametrize("name", ["x[1].csv", "*.csv", "it's.csv", "{a,b}.csv", "x" * 251 + ".csv", "x[1].parquet"])
def test_an_export_has_the_name_it_was_given(run, tmp_path, name):
    (tmp_path / "x1.csv").write_text("another file")
    assert export([run], "SELECT subject FROM records", tmp_path / name) == 4
    assert (tmp_path / "x1.csv").read_text() == "another file"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["run", "x1.csv", name])


def test_an_export_is_not_written_through_a_link_that_was_left_there(run, tmp_path):
    (tmp_path / "outside").write_text("mine")
    (tmp_path / ".x.csv.part").symlink_to(tmp_path / "outside")
    export([run], "SELECT subject FROM records", tmp_path / "x.csv")
    assert (tmp_path / "outside").read_text() == "mine"


def test_words_of_an_exported_table_are_no_formulas_and_numbers_stay_numbers(tmp_path):
    names = ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", "-2.5", "plain", "＝1"]
    path = write(tmp_path / "run", *(measured(float(n + 1), [0.1], name=name) for n, name in enumerate(names)))
    sql = "SELECT subject, -seconds AS minus, subject AS minus FROM records ORDER BY seconds"
    export([path], sql, tmp_path / "x.csv")
    rows = list(csv.reader((tmp_path / "x.csv").open(newline="")))
    assert rows[0][:2] == ["subject", "minus"]
    assert [row[0] for row in rows[1:]] == [*(f"'{name}" for name in names[:5]), "-2.5", "plain", "'＝1"]
    assert [float(row[1]) for row in rows[1:]] == [-float(n + 1) for n in range(len(names))]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("round",), "0"), (("round",), 1.5), (("status",), "fine"), (("wall_s",), "1.5"), (("wall_s",), True),
        (("warnings",), [1]), (("case", "axes", "seconds"), "5"), (("case", "meters"), [3]),
        (("case", "subject", "name"), {"a": 1}), (("measurements", 0, "values"), ["0.5"]),
        (("measurements", 0, "values"), []), (("measurements", 0, "values"), [1e300]),
        (("measurements", 0, "notes"), {"batches": 9}), (("case", "protocol", "mode"), "repeats"),
    ],
)  # fmt: skip
def test_a_record_that_show_refuses_is_not_answered(run, path, value):
    lines = (run / "records.jsonl").read_text().splitlines()
    data = json.loads(lines[1])
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    (run / "records.jsonl").write_text("\n".join([lines[0], json.dumps(data), *lines[2:]]) + "\n")
    with pytest.warns(SkippedLinesWarning, match="line 2"):
        assert query([run], "SELECT count(*) FROM records").rows == ((3,),)
    with pytest.warns(SkippedLinesWarning, match="line 2"):
        assert query([run], "SELECT count(*) FROM measurements WHERE seconds = 2").rows == ((0,),)


@pytest.mark.parametrize("change", [(b"[0.3]", b"[0.3,]"), (b"[0.3]", b"[NaN]"), (b'"round":', b'"round":0,"round":')])
def test_a_line_that_only_duckdb_could_read_is_not_answered_otherwise_than_by_show(run, change):
    (run / "records.jsonl").write_bytes((run / "records.jsonl").read_bytes().replace(*change))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedLinesWarning)
        shown = {(record.case.id, record.round) for record in RunDir(run).records()}
        assert set(query([run], "SELECT case_id, round FROM records").rows) == shown


def test_an_id_that_a_line_claims_is_not_believed(run):
    lines = (run / "records.jsonl").read_text().splitlines()
    first, second = json.loads(lines[0]), json.loads(lines[1])
    lines[1] = json.dumps({**second, "id": first["id"]})
    (run / "records.jsonl").write_text("\n".join(lines) + "\n")
    ids = {record.case.id for record in RunDir(run).records()}
    assert {row[0] for row in query([run], "SELECT case_id FROM records").rows} == ids


def test_words_of_a_record_do_not_steer_a_terminal_from_a_result(run):
    text = (run / "records.jsonl").read_text().replace('"fake"', json.dumps("\x1b]0;owned\x07\x9b2J"))
    (run / "records.jsonl").write_text(text)
    for sql in ("SELECT subject FROM records", "SELECT subject FROM estimates", "SELECT subject FROM measurements"):
        words = "".join(row[0] for row in query([run], sql).rows)
        assert "owned" in words
        assert not any(sign in words for sign in "\x1b\x07\x9b")


def test_a_round_of_any_number_that_show_takes_is_answered(tmp_path):
    path = write(tmp_path / "run", measured(1.0, [0.1], round=2**40))
    assert query([path], "SELECT round FROM records").rows == ((2**40,),)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE records",
        "DELETE FROM records",
        "CREATE TABLE x AS SELECT 1",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY (SELECT 1) TO 'x.csv'",
        "COPY (SELECT 1) TO 'x.csv'",
        "ATTACH 'x.db'",
        "INSTALL httpfs",
        "VACUUM",
        "",
    ],
)
def test_what_is_not_one_select_is_refused(run, sql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="a query must be one SELECT"):
        query([run], sql)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "source",
    [
        "read_text('{path}')",
        "read_blob('{path}')",
        "read_csv('{path}')",
        "read_json('{path}')",
        "read_parquet('{path}')",
        "'{path}'",
        "glob('{path}')",
        "query('FROM read_text(''{path}'')')",
        "read_text('https://example.invalid/x')",
    ],
)
def test_no_query_reaches_a_file(run, source):
    with pytest.raises(InputError, match=r"disabled by configuration|Catalog Error"):
        query([run], f"SELECT * FROM {source.format(path=run / 'records.jsonl')}")


def test_no_query_reaches_a_variable_of_python(run):
    secret = {"x": [1]}
    with pytest.raises(InputError, match="secret"):
        query([run], "SELECT * FROM secret")
    assert secret


def test_a_wrong_name_is_answered_in_one_line_with_the_way_out(run):
    with pytest.raises(InputError) as refusal:
        query([run], "SELECT latencyy FROM estimates")
    assert "latencyy" in str(refusal.value)
    assert "lists the tables and their columns" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_export_holds_what_the_query_gives(run, tmp_path, suffix):
    sql = "SELECT subject, seconds, value, low FROM estimates WHERE metric = 'latency.v1' ORDER BY ALL"
    output = tmp_path / f"figures.{suffix}"
    rows = query([run], sql).rows
    assert export([run], sql, output) == len(rows)
    if suffix == "parquet":
        import duckdb

        assert tuple(duckdb.connect().execute(f"FROM '{output}'").fetchall()) == rows
    else:
        read = list(csv.reader(output.open()))
        assert read[0] == ["subject", "seconds", "value", "low"]
        assert [float(row[2]) for row in read[1:]] == [row[2] for row in rows]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_export_keeps_what_stands_there_and_leaves_nothing_half_written(run, tmp_path):
    output = tmp_path / "x.csv"
    output.write_text("mine")
    with pytest.raises(InputError, match="`force`"):
        export([run], "SELECT * FROM records", output)
    with pytest.raises(InputError, match="nothing"):
        export([run], "SELECT nothing FROM records", output, force=True)
    assert output.read_text() == "mine"
    assert export([run], "SELECT subject FROM records", output, force=True) == 4
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        export([run], "SELECT 1", tmp_path / "x.xlsx")
    with pytest.raises(InputError, match="there is no directory"):
        export([run], "SELECT 1", tmp_path / "absent/x.csv")
