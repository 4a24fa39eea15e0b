"""Tables at any width: no number is broken, nothing is lost, no line is longer than the terminal."""

import io
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from speechmeter.report.terminal import blocks, draw_rows, wrapped

NUMBER = re.compile(r"\d(?:[\d.,]*\d)?(?:[eE][+-]?\d+)?")
CELLS = [
    "0.0424 ±3%",
    "5.32 % [4.10, 6.70] imported",
    "94,371,712",
    "1.23E-01",
    "201 ms ±64% (n=4)",
    "–",
    "oom",
    "+1.50",
]
LABELS = [
    "wav2vec2-base · cpu · 5 s × 4",
    "encoder.layers.11.self_attn",
    "    conv",
    "moonshine-voice:tiny",
    "中文 7.5",
    "",
]


def drawn(headings, rows, labels, width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    draw_rows(headings, [list(map(Text, row)) for row in rows], console, labels=labels)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())


@settings(max_examples=150)
@given(
    labels=st.integers(1, 3),
    figures=st.integers(0, 8),
    rows=st.integers(1, 3),
    width=st.integers(32, 120),
    draw=st.data(),
)
def test_no_number_is_broken_or_lost_at_any_width(labels, figures, rows, width, draw):
    made = [
        [draw.draw(st.sampled_from(LABELS)) for _ in range(labels)]
        + [draw.draw(st.sampled_from(CELLS)) for _ in range(figures)]
        for _ in range(rows)
    ]
    headings = [f"label {'x' * place}" for place in range(labels)] + ["peak memory growth"] * figures
    text = drawn(headings, made, labels, width)
    assert max(map(cell_len, text.splitlines())) <= width
    wanted = Counter(number for row in made for cell in row for number in NUMBER.findall(cell))
    found = Counter(NUMBER.findall(text))
    assert all(found[number] >= count for number, count in wanted.items()), (wanted - found, text)


HEADINGS = ["case", "latency", "memory needed"]
ROWS = [["wav2vec2-base · cpu · 5 s × 4", "1.53 s ±2% (n=4)", "94,371,712"], ["log-mel", "273 µs ±13%", "0"]]


def test_a_table_that_fits_is_one_line_a_row():
    lines = drawn(HEADINGS, ROWS, 1, 80).splitlines()
    assert len(lines) == 6
    assert "│ wav2vec2-base · cpu · 5 s × 4 │ 1.53 s ±2% (n=4) │    94,371,712 │" in lines


def test_headings_and_names_wrap_before_figures_do():
    assert drawn(HEADINGS, ROWS, 1, 54).splitlines() == [
        "┏━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┓",
        "┃                 ┃                  ┃     memory ┃",
        "┃ case            ┃          latency ┃     needed ┃",
        "┡━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━┩",
        "│ wav2vec2-base · │ 1.53 s ±2% (n=4) │ 94,371,712 │",
        "│ cpu · 5 s × 4   │                  │            │",
        "├─────────────────┼──────────────────┼────────────┤",
        "│ log-mel         │      273 µs ±13% │          0 │",
        "└─────────────────┴──────────────────┴────────────┘",
    ]


def test_columns_that_do_not_fit_follow_in_another_block_with_the_labels():
    text = drawn(HEADINGS, ROWS, 1, 34)
    assert text.count("wav2vec2-base") == text.count("log-mel") == 2
    assert text.index("1.53 s") < text.index("94,371,712")


def test_where_nothing_fits_side_by_side_every_figure_has_a_line():
    assert drawn(HEADINGS, ROWS, 1, 20).splitlines() == [
        "wav2vec2-base · cpu",
        "· 5 s × 4",
        "  latency: 1.53 s",
        "  ±2% (n=4)",
        "  memory needed:",
        "  94,371,712",
        "log-mel",
        "  latency: 273 µs",
        "  ±13%",
        "  memory needed: 0",
    ]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("fits", 10, ["fits"]),
        ("two words", 5, ["two", "words"]),
        ("a 201 ms b", 7, ["a", "201 ms", "b"]),
        ("layers.11.ffn", 8, ["layers.", "11.ffn"]),
        ("    conv of it", 9, ["    conv", "of it"]),
        ("one\ntwo three", 5, ["one", "two", "three"]),
        ("", 5, [""]),
    ],
)
def test_text_is_broken_between_words_and_never_inside_a_number(text, width, lines):
    assert [text[start:end] for start, end in wrapped(text, width)] == lines


def test_labels_alone_share_the_room():
    (block,) = blocks([["model", "a" * 40], ["what it is", "b " * 40]], 2, 50)
    assert sum(block.widths) + 7 == 50
    assert abs(block.widths[0] - block.widths[1]) <= 12
