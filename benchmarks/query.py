"""SQL over 100,000 records, beside reading the same file in Python.

The records are copies of one measured record with other models, seconds, batches and rounds. `speechmeter query` is
started as a user does, start-up and all; beside it a bare Python program computes the same from the same lines with
`json` from the standard library. Both answers must agree. Runs alternate; medians count. The first question about a new
file checks every record of it, and later ones do not: it is timed apart, in an empty cache.

    python benchmarks/query.py [RECORDS]       exit 1 when a verdict is no
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from startup import (
    OUR_SCRIPT,
    Shape,
    made_up_records,
    measured_record,
    print_walls,
    sorted_walls_s,
    verdict,
    wall_s,
    write_run,
)

RECORDS = 100_000
REPETITIONS = 5
LIMIT_S = 1.0
SHAPE = Shape(models=100, seconds=20, batches=10, rounds=1_000)

_HEAD = """
import json, sys
from collections import defaultdict
from statistics import median
found = defaultdict(list)
for line in open(sys.argv[1], "rb"):
    record = json.loads(line)
"""


@dataclass(frozen=True, kw_only=True)
class Question:
    """The same question in SQL and in plain Python; both give (model, figure) rows."""

    name: str
    sql: str
    python: str


QUESTIONS = (
    Question(
        name="over records: median wall time a model",
        sql="SELECT subject, median(wall_s) AS figure FROM records GROUP BY subject ORDER BY subject",
        python='    found[record["case"]["subject"]["name"]].append(record["wall_s"])\n',
    ),
    Question(
        name="over measurements: median latency a model",
        sql="SELECT subject, median(median) AS figure FROM measurements "
        "WHERE metric = 'latency.v1' AND scope = 'total' GROUP BY subject ORDER BY subject",
        python='    for m in record["measurements"]:\n'
        '        if m["metric"] == "latency.v1" and m["scope"] == "total":\n'
        '            found[record["case"]["subject"]["name"]].append(median(m["values"]))\n',
    ),
)
_TAIL = 'print(json.dumps([{"subject": name, "figure": median(found[name])} for name in sorted(found)]))\n'


def answer(command: list[str]) -> list[tuple[str, float]]:
    """The rows that a command prints as JSON, figures to nine digits."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [(row["subject"], float(f"{row['figure']:.9g}")) for row in json.loads(printed)]


def cpu_s(command: list[str]) -> float:
    """Seconds of CPU that a command takes on all cores: hardly longer on a busy machine, other than its wall time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ask(question: Question, run: Path) -> float:
    """Print the times of both ways, and our median in seconds. Raises RuntimeError where the answers differ."""
    commands = {
        "speechmeter query": [
            sys.executable, str(OUR_SCRIPT), "query", str(run), question.sql, "--format", "json",
        ],
        "Python, json": [sys.executable, "-c", _HEAD + question.python + _TAIL, str(run / "records.jsonl")],
    }  # fmt: skip
    ours, theirs = (answer(command) for command in commands.values())
    if ours != theirs:
        raise RuntimeError(f"{question.name}: the answers differ")
    found = sorted_walls_s(commands, REPETITIONS)
    print(f"\n{question.name}; {REPETITIONS} interleaved runs each")
    print_walls(found)
    query_s, python_s = (median(values) for values in found.values())
    work_s = [cpu_s(command) for command in commands.values()]
    print(f"ratio of query to Python {query_s / python_s:.2f}; CPU time {work_s[0]:.2f} s and {work_s[1]:.2f} s")
    return query_s


def ask_first(run: Path) -> None:
    """Print what the first question takes, which checks the records."""
    command = [sys.executable, str(OUR_SCRIPT), "query", str(run), QUESTIONS[0].sql, "--format", "json"]
    time.sleep(3)  # a file that was written just now is not remembered as checked
    first_s, second_s = wall_s(command), wall_s(command)
    print(f"the first question about a file {first_s:.1f} s, the second {second_s:.2f} s")


def main() -> int:
    """Ask all questions; 0 when every verdict is yes."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        begun, run = Path(folder) / "pattern", Path(folder) / "run"
        write_run(run, begun, islice(made_up_records(measured_record(begun), SHAPE), count))
        size_mb = (run / "records.jsonl").stat().st_size / 1e6
        print(f"{count:,} records, {size_mb:.0f} MB")
        ask_first(run)
        over_records_s, _ = [ask(question, run) for question in QUESTIONS]
    return 0 if verdict(f"over records within {LIMIT_S:g} s", over_records_s <= LIMIT_S) else 1


if __name__ == "__main__":
    sys.exit(main())
