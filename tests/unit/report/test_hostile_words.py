"""Names of strangers through every format: shown, never obeyed. Nothing is executed, split, or of another run."""

import csv
import io
import json
import re
import shlex
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import make_case, make_record
from markdown_it import MarkdownIt
from rich.console import Console

from speechmeter.api.comparing import compare, select
from speechmeter.api.histories import history
from speechmeter.api.querying import export, query
from speechmeter.core import metrics
from speechmeter.core.hosts import hosts_apart
from speechmeter.core.printable import NUMBER, one_line, only_text, printable
from speechmeter.core.types import Measurement, Spec
from speechmeter.plan.source import from_models, from_set
from speechmeter.report.again import command
from speechmeter.report.charts.modules import figures
from speechmeter.report.choose import tables
from speechmeter.report.comparison import comparison_json, comparison_table, github
from speechmeter.report.history import history_github, history_json, history_table
from speechmeter.report.page.build import build_page, embedded, page_data
from speechmeter.report.plot import encoded, figures_of
from speechmeter.report.results import FORMATS as RESULT_FORMATS
from speechmeter.report.results import result_table
from speechmeter.report.sources import read_sources
from speechmeter.report.terminal import draw
from speechmeter.report.text import FORMATS
from speechmeter.store.run_dir import RunDir, RunWriter

BENIGN = "model"
WORDS = {
    "pipe": "a|b", "escaped pipe": "a\\|b", "two backslashes": "a\\\\|b", "backslash at the end": "a\\",
    "line feed": "a\nb", "line ends": "a\r\n\r\n# b", "empty line": "a\n\n| x | y |\n|--|--|", "tab": "a\tb",
    "escape sequence": "\x1b[2J\x1b]0;owned\x07red", "C1": "a\x9b2Jb", "override": "a\u202eb\u2066c",
    "marks": "שלום\u200f", "zero width": "a\u200bb\u200cc\u200dd\ufeffe", "formula": "=cmd|' /C calc'!A0",
    "plus": "+1+cmd",
    "minus": "-1+cmd", "at": "@SUM(1+1)", "tab formula": "\t=1+1", "return formula": "\r=1+1", "wide formula": "＝1+1",
    "marked formula": "\ufeff=1+1",
    "script": "</script><script>alert(1)</script>", "image": "<img src=x onerror=alert(1)>", "comment": "<!-- a",
    "entity": "&lt;b&gt;&#60;", "separators": "a\u2028b\u2029c", "NUL": "a\x00b", "surrogate": "a\ud800b",
    "quotes": "\"a' `b` ''' \"\"\"", "long": "x" * 300, "SQL": "'; DROP TABLE records; --", "SQL comment": "a/*b*/--c",
    "pattern": "run[12]*?{a,b}**", "link": "[a](javascript:alert(1))", "definition": "[model]: http://evil.invalid",
    "picture": "![a](http://evil.invalid/x.png)", "emphasis": "**a** _b_ ~~c~~ $d$ __e__", "heading": "# a #",
    "item": "- a", "number": "1. a", "quote": "> a", "rule": "---", "code": "```\na\n```", "markup": "[bold red]a[/]",
    "TeX": "\\end{tabular}\\input{/etc/passwd} & % $ # _ { } ~ ^^M", "row options": " [9cm] a", "star": "*",
    "template": "${data} $style %s {0} {{x}}", "shell": "$(touch pwned); `touch pwned` 'x", "spaces": "  a  ",
}  # fmt: skip
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PLAIN_TOKENS = {"text", "text_special", "softbreak"}


def module(path, kind, time_s):
    notes = {"class": kind, "calls": 1, "forward": [time_s], "backward": [2 * time_s]}
    return Measurement.of(metrics.TIME_MODULE, [3 * time_s], scope=f"module:{path}", notes=notes)


def records(word, value_s=0.5):
    """A case whose every name is the word, and one that failed with it."""
    case = make_case(word, meters=("latency", "modules"), workload=Spec(plugin="audio", name=word, source="noise"))
    parts = (
        Measurement.of(metrics.LATENCY, [value_s, value_s * 1.01], source=word, notes={"stop": word}),
        Measurement.of(metrics.LATENCY, [value_s / 2], scope=f"stage:{word}"),
        Measurement.of(metrics.AUDIO_SECONDS, [1.0]),
        Measurement.absent(metrics.ENERGY_GPU, word),
        module("net", "Net", 0.1),
        module(f"net.{word}", word, 0.3),
    )
    failed = make_case(word, seconds=2.0)
    return [
        *(make_record(case, *parts, round=n, sequence=n, host="pi", started="2026-05-01T10:00:00+00:00",
                      warnings=(word,)) for n in range(3)),
        make_record(failed, sequence=3, host="pi", status="error", reason=word),
    ]  # fmt: skip


def run_of(path, word, value_s=0.5):
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for record in records(word, value_s):
            store.append(record)
    return path


@pytest.fixture(params=WORDS, ids=str)
def word(request):
    return WORDS[request.param]


@pytest.fixture
def run(tmp_path, word):
    return run_of(tmp_path / "run", word)


def all_tables(path):
    read = hosts_apart(RunDir.existing(path).records())
    return [table for view in (None, "stages", "modules", "summary", "cold-start") for table in tables(read, view)]


def benign(tmp_path, value_s=0.5):
    return run_of(tmp_path / "benign", BENIGN, value_s)


def drawn(found):
    console = Console(file=io.StringIO(), width=20_000, force_terminal=False)
    draw(found, console)
    return console.file.getvalue()


def assert_safe_to_print(text):
    assert printable(text) == text
    text.encode()


def shape(text):
    """The tables, rows and cells, headings and items of a Markdown text; every word in it is a word."""
    found = []
    for token in MARKDOWN.parse(text):
        if token.type == "inline":
            assert {child.type for child in token.children} <= PLAIN_TOKENS, token.content
        else:
            found.append(token.type)
    return found


def words_in(text):
    return [token.children for token in MARKDOWN.parse(text) if token.type == "inline"]


def as_read(word):
    """The word as it comes back from a file: halves of surrogate pairs and control characters are marks."""
    return only_text(word.encode(errors="replace").decode())


def said(children):
    return "".join(child.content for child in children)


def test_a_terminal_shows_as_many_lines_as_for_any_name(run, tmp_path):
    text = drawn(all_tables(run))
    assert_safe_to_print(text)
    assert len(text.splitlines()) == len(drawn(all_tables(benign(tmp_path))).splitlines())


def test_markdown_has_the_same_tables_and_shows_the_word(run, word, tmp_path):
    text = FORMATS["markdown"](all_tables(run))
    assert_safe_to_print(text)
    assert shape(text) == shape(FORMATS["markdown"](all_tables(benign(tmp_path))))
    shown = " ".join(one_line(as_read(word)).split())
    assert any(shown in " ".join(said(children).split()) for children in words_in(text))


def test_csv_has_whole_rows_and_no_formula(run, tmp_path):
    text = FORMATS["csv"](all_tables(run))
    assert_safe_to_print(text)
    rows = list(csv.reader(io.StringIO(text)))
    assert (
        len(rows)
        == len(text.splitlines())
        == len(list(csv.reader(io.StringIO(FORMATS["csv"](all_tables(benign(tmp_path)))))))
    )
    assert {len(row) for row in rows} == {12}
    assert [
        cell for row in rows for cell in row if cell[:1] in "=+-@\t\r＝" and cell and not re.fullmatch(NUMBER, cell)
    ] == []
    values = [row[6] for row in rows[1:] if row[6]]
    assert values
    assert all(float(value) >= 0 for value in values)


def test_latex_has_whole_rows_and_no_command_of_the_word(run, tmp_path):
    text, usual = (FORMATS["latex"](all_tables(path)) for path in (run, benign(tmp_path)))
    assert_safe_to_print(text)
    assert len(text.splitlines()) == len(usual.splitlines())

    def columns(made):
        return [len(re.findall(r"(?<!\\)&", line)) for line in made.splitlines() if line.endswith(r"\\")]

    assert columns(text) == columns(usual)
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)\\(input|end\{tabular\}\\)", code)
    assert all(
        re.sub(r"\\[{}]", "", line).count("{") == re.sub(r"\\[{}]", "", line).count("}") for line in code.splitlines()
    )
    assert not any(re.match(r"\s*[\[*]", line) for line in code.splitlines())


def test_json_says_the_same(run, word):
    text = FORMATS["json"](all_tables(run))
    assert_safe_to_print(text)
    labels = [label for table in json.loads(text) for row in table["rows"] for label in row["labels"]]
    assert any(as_read(word) in label for label in labels)


@pytest.fixture(scope="module")
def of_all(tmp_path_factory):
    """One run with a case for each word, beside others that are not asked."""
    folder = tmp_path_factory.mktemp("runs")
    run_of(folder / "run1", "of another run")
    with RunWriter(folder / "run[12]") as store:
        store.begin("models: [log-mel]\n")
        for place, word in enumerate(WORDS.values()):
            latency = Measurement.of(metrics.LATENCY, [0.5], scope="total", source=word)
            store.append(make_record(make_case(word, seconds=1.0 + place), latency, sequence=place, reason=word))
    return folder / "run[12]"


@pytest.mark.parametrize("table", ["records", "measurements", "estimates"])
def test_a_query_answers_of_this_run_alone(of_all, table):
    pytest.importorskip("duckdb")
    found = query([of_all], f"SELECT DISTINCT subject, seconds FROM {table} ORDER BY seconds")
    assert [row[0] for row in found.rows] == [as_read(word) for word in WORDS.values()]


def test_a_result_has_whole_rows_in_every_format(word):
    asked = (word, ("subject", "n"), ((as_read(word), 1), (word, 2), ([word], 3)))
    usual = ("title", ("subject", "n"), ((BENIGN, 1), (BENIGN, 2), ([BENIGN], 3)))
    assert shape(RESULT_FORMATS["markdown"](*asked)) == shape(RESULT_FORMATS["markdown"](*usual))
    assert len(drawn([result_table(*asked)]).splitlines()) == len(drawn([result_table(*usual)]).splitlines())
    rows = list(csv.reader(io.StringIO(RESULT_FORMATS["csv"](*asked))))
    assert [row[1] for row in rows] == ["n", "1", "2", "3"]
    assert not any(row[0][:1] in tuple("=+-@\t\r＝") for row in rows)
    for text in (drawn([result_table(*asked)]), *(write(*asked) for write in RESULT_FORMATS.values())):
        assert_safe_to_print(text)


def test_an_exported_csv_has_whole_rows_and_no_formula(of_all, tmp_path):
    pytest.importorskip("duckdb")
    export([of_all], "SELECT subject, -seconds AS n FROM records ORDER BY seconds", tmp_path / "x.csv")
    rows = list(csv.reader((tmp_path / "x.csv").open(newline="", encoding="utf-8")))
    assert [row[1] for row in rows[1:]] == [f"-{1.0 + place}" for place in range(len(WORDS))]
    assert not any(row[0].lstrip(" \ufeff")[:1] in tuple("=+-@＝") for row in rows)
    assert not any(sign in row[0] for row in rows for sign in "\u202e\u2066\u2028\u2029")


@pytest.mark.parametrize("name", ["pattern", "SQL", "quotes", "override", "separators", "escape sequence", "link"])
def test_a_folder_of_that_name_is_that_run(tmp_path, name):
    pytest.importorskip("duckdb")
    run_of(tmp_path / "run1", "of another run")
    path = run_of(tmp_path / WORDS[name].replace("/", "_"), "own")
    assert query([path], "SELECT DISTINCT subject FROM records").rows == (("own",),)
    (source,) = read_sources([str(path)])
    assert_safe_to_print(source.name)
    assert "\n" not in source.name


def test_the_page_of_all_words_has_no_script_but_ours(of_all, monkeypatch):
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda: "0;")  # it takes seconds, and is not ours
    usual = build_page(read_sources([str(of_all.parent / "run1")]), "0")
    page = build_page(read_sources([str(of_all)]), "0")
    assert page.count("<script") == usual.count("<script")
    assert page.count("</script") == usual.count("</script")
    assert "onerror=alert" not in page.replace(r"\u003cimg src=x onerror=alert", "")


def test_a_comparison_has_the_same_shape(run, word, tmp_path):
    slow = run_of(tmp_path / "slow", word, 0.9)
    found = compare(select(str(run)), select(str(slow)), {"latency": 0.05})
    usual = compare(
        select(str(benign(tmp_path))), select(str(run_of(tmp_path / "benign slow", BENIGN, 0.9))), {"latency": 0.05}
    )
    texts = [github(comparison_table(one.family, one.notes, "5%"), one.family) for one in (found, usual)]
    heads = [text.splitlines()[0] for text in texts]
    assert "Regression" in heads[0]
    for text in texts:
        assert_safe_to_print(text)
    tokens = [[child.type for child in children] for children in (words_in(head)[0] for head in heads)]
    assert set(tokens[0]) == {"text", "strong_open", "strong_close", *(PLAIN_TOKENS & set(tokens[0]))}
    bodies = [text[text.index("###") : text.rindex("</details>")] for text in texts]
    assert shape(bodies[0]) == shape(bodies[1])
    data = json.loads(comparison_json(found.family, found.notes))
    assert as_read(word) in data["verdicts"][0]["case"]


def test_a_history_has_the_same_shape(run, tmp_path):
    texts = []
    for path in (run, benign(tmp_path)):
        (tmp_path / f"of {path.name}").mkdir()
        path.rename(tmp_path / f"of {path.name}" / "one")
        found = history(str(tmp_path / f"of {path.name}"), {"latency": 0.05})
        table = history_table(found.series, found.runs, found.notes, "5%")
        texts.append(FORMATS["markdown"]([table]))
        for text in (history_github(table, found.series), history_json(found.series, found.notes), drawn([table])):
            assert_safe_to_print(text)
    assert shape(texts[0]) == shape(texts[1])


def test_the_page_holds_the_words_as_data(of_all):
    text = embedded(page_data(read_sources([str(of_all)]), "0"))
    assert not set("<\x00\x1b") & set(text)
    labels = [case["label"] for case in json.loads(text)["studies"][0]["cases"]]
    assert all(any(as_read(word) in label for label in labels) for word in WORDS.values())


def test_the_command_of_a_case_gives_a_shell_the_same_words(word):
    words = shlex.split(command(records(as_read(word))[0].case, 1))
    assert words[:2] == ["speechmeter", "run"]
    flag, text = words[2:4]
    (model,) = (from_models([text]) if flag == "--model" else from_set(text)).value
    assert model["name"] == as_read(word)


def test_charts_of_modules_are_drawn_whatever_their_classes_are_called(tmp_path):
    """All words in one drawing: Vega writes names into expressions, in which a separator of lines is an error."""
    case = make_case("net", meters=("latency", "modules"))
    rows = [module(f"net.{n}", word, 0.1 + n / 100) for n, word in enumerate(WORDS.values())]
    with RunWriter(tmp_path / "run") as store:
        store.begin("models: [log-mel]\n")
        store.append(make_record(case, Measurement.of(metrics.LATENCY, [9.0]), module("net", "Net", 0.1), *rows))
    sources = read_sources([str(tmp_path / "run")])
    (figure,) = figures(sources[0])
    kinds = {row["kind"] for row in figure.rows}
    assert len(kinds) > len(WORDS) / 2
    assert not any(sign in kind for kind in kinds for sign in "\u2028\u2029\n\x00")
    drawing = encoded(figures_of(sources, "modules"), ".svg")
    assert ElementTree.fromstring(drawing).tag.endswith("svg")
    assert b"<script" not in drawing
    assert b"onerror=alert(1)>" not in drawing


def test_the_name_of_a_folder_is_drawn_as_one_line(tmp_path):
    path = run_of(tmp_path / "a\u2028b\nc\x1b[2J", BENIGN)
    (source,) = read_sources([str(path)])
    assert source.name == "a b c\N{REPLACEMENT CHARACTER}[2J"
