"""What a command costs before it does anything, and `show` on a long run.

`speechmeter --help` is set against the `--help` of a bare Typer app of eleven commands that does nothing, twice: with
Typer's defaults (rich help, completion), and with both switched off as we do, the harder peer. The verdict is on both.
All are started by this interpreter from the script that an installer writes for an entry point, because that is what a
user types: ours is the installed one, the bare ones are copies of it that import another module. `python -m` would add
the start of `runpy` to all alike. A bare app is a module with a cached .pyc, like ours. Runs alternate; medians count.

`show` reads 5,000 made-up records, copies of one measured record with other models, seconds and batches: as 5,000
cases of one round, and as 1,000 cases of five rounds, where each cell also gets an interval.

    python benchmarks/startup.py        exit 1 when a verdict is no
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter

import speechmeter
from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Record

REPETITIONS = 15
SHOW_REPETITIONS = 5
COMMANDS = 11
HELP_LIMIT = 1.3
SHOW_LIMIT_S = 2.0
HEAVY = ("torch", "pydantic", "pydantic_core", "duckdb", "numpy", "scipy")
FORMATS = ("table", "json")

OUR_SCRIPT = Path(sys.executable).with_name("speechmeter")
OUR_MODULE, BARE_MODULE = "speechmeter.cli.main", "bare_app"
PLAN = {"models": ["log-mel"], "seconds": [1], "batch": [1], "rounds": 1, "repeats": 10}

_BARE_HEAD = """\
import typer

app = typer.Typer({options})
"""
_PLAIN = "add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False"
_BARE_COMMAND = '''

@app.command()
def command{number}(name: str = typer.Option("x", help="A name."), count: int = typer.Option(1, help="How many.")):
    """Do what command {number} does."""
'''
_BARE_TAIL = """

def main():
    app()
"""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How many models, seconds, batches and rounds a made-up run has."""

    models: int
    seconds: int
    batches: int
    rounds: int

    @property
    def label(self) -> str:
        """What the table calls it."""
        cases = self.models * self.seconds * self.batches
        return f"{cases:,} cases × {self.rounds} round{'s' if self.rounds > 1 else ''}"


SHAPES = (Shape(models=25, seconds=20, batches=10, rounds=1), Shape(models=5, seconds=20, batches=10, rounds=5))


def write_bare_app(folder: Path, options: str) -> Path:
    """The start script of a bare app, beside its module."""
    folder.mkdir()
    commands = "".join(_BARE_COMMAND.format(number=number) for number in range(1, COMMANDS + 1))
    (folder / f"{BARE_MODULE}.py").write_text(_BARE_HEAD.format(options=options) + commands + _BARE_TAIL)
    script = folder / "bare"
    script.write_text(OUR_SCRIPT.read_text().replace(OUR_MODULE, BARE_MODULE))
    return script


def wall_s(command: Sequence[str]) -> float:
    """Seconds from start to end of a command. Raises CalledProcessError when it fails."""
    start = perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return perf_counter() - start


def sorted_walls_s(commands: Mapping[str, Sequence[str]], repetitions: int) -> dict[str, list[float]]:
    """Seconds of each command, sorted: runs interleaved, every other turn backwards, one run before thrown away."""
    walls: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(-1, repetitions):
        for name in list(commands)[:: -1 if turn % 2 else 1]:
            spent_s = wall_s(commands[name])
            if turn >= 0:
                walls[name].append(spent_s)
    return {name: sorted(values) for name, values in walls.items()}


def compare_help(folder: Path) -> bool:
    """Print the times of both helps; whether ours stays within the limit."""
    commands = {
        "speechmeter --help": [sys.executable, str(OUR_SCRIPT), "--help"],
        "bare Typer app, rich help": [sys.executable, str(write_bare_app(folder / "rich", "")), "--help"],
        "bare Typer app, plain help": [sys.executable, str(write_bare_app(folder / "plain", _PLAIN)), "--help"],
    }
    found = sorted_walls_s(commands, REPETITIONS)
    print(f"Start: {REPETITIONS} interleaved runs each, console scripts")
    print_walls(found)
    ours_s, *bare_s = (median(values) for values in found.values())
    print("ratios " + ", ".join(f"{ours_s / bare:.2f}" for bare in bare_s))
    return verdict("≤ 1.3 × of either", ours_s <= HELP_LIMIT * min(bare_s))


def check_imports() -> bool:
    """Print which heavy packages `--help` imports; whether there is none."""
    command = [sys.executable, "-X", "importtime", str(OUR_SCRIPT), "--help"]
    log = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in log.splitlines()}
    if "typer" not in names:
        raise RuntimeError("-X importtime shows no typer: its output cannot be read")
    found = [name for name in HEAVY if name in names]
    print(f"heavy imports of --help: {', '.join(found) or 'none'} (of {', '.join(HEAVY)})")
    return verdict("imports nothing heavy", not found)


def measured_record(folder: Path) -> Record:
    """A real record, so that the made-up ones hold everything that a record of today holds."""
    (record,) = speechmeter.run(PLAN, output=folder).records
    if record.status != "ok":
        raise RuntimeError(f"the pattern could not be measured: {record.reason}")
    return record


def made_up_records(pattern: Record, shape: Shape) -> Iterator[Record]:
    """Valid records of every cell in every round, times and audio growing with the cell."""
    cells = product(range(shape.rounds), range(shape.models), range(1, shape.seconds + 1), range(1, shape.batches + 1))
    for sequence, (round_, model, seconds, batch) in enumerate(cells):
        subject = replace(pattern.case.subject, name=f"model-{model:02}")
        case = replace(pattern.case, subject=subject).with_axes(seconds=float(seconds), batch=batch)
        drift = 1 + 0.01 * (sequence % 7)
        measurements = tuple(_scaled(m, seconds * batch, drift) for m in pattern.measurements)
        yield replace(pattern, case=case, round=round_, sequence=sequence, measurements=measurements)


def _scaled(measurement: Measurement, size: int, drift: float) -> Measurement:
    factors = {
        metrics.LATENCY.id: size * drift,
        metrics.MEMORY_CPU_PEAK.id: size * drift,
        metrics.AUDIO_SECONDS.id: size,
    }
    factor = factors.get(measurement.metric, 1)
    return replace(measurement, values=tuple(value * factor for value in measurement.values))


def write_run(folder: Path, begun: Path, records: Iterator[Record]) -> None:
    """A run directory like `begun` with other records; written in one go, without an fsync a line."""
    shutil.copytree(begun, folder)
    with (folder / "records.jsonl").open("w") as file:
        file.writelines(json.dumps(record.to_json()) + "\n" for record in records)


def compare_show(folder: Path) -> bool:
    """Print the times of `show`; whether the slowest median stays within the limit."""
    begun = folder / "pattern"
    pattern = measured_record(begun)
    commands: dict[str, list[str]] = {}
    for number, shape in enumerate(SHAPES):
        run = folder / f"run-{number}"
        write_run(run, begun, made_up_records(pattern, shape))
        for format_ in FORMATS:
            name = f"show --format {format_}, {shape.label}"
            commands[name] = [sys.executable, str(OUR_SCRIPT), "show", str(run), "--format", format_]
    found = sorted_walls_s(commands, SHOW_REPETITIONS)
    size_mb = (folder / "run-0" / "records.jsonl").stat().st_size / 1e6
    print(f"\nShow: 5,000 records ({size_mb:.1f} MB), {SHOW_REPETITIONS} interleaved runs each")
    print_walls(found)
    return verdict("within 2 s", all(median(values) <= SHOW_LIMIT_S for values in found.values()))


def print_walls(found: Mapping[str, Sequence[float]]) -> None:
    """Median, fastest and slowest of each, in milliseconds."""
    print(f"{'':48}{'median, ms':>11}{'min':>8}{'max':>8}")
    for name, values in found.items():
        print(f"{name:48}{median(values) * 1e3:11.0f}{values[0] * 1e3:8.0f}{values[-1] * 1e3:8.0f}")


def verdict(claim: str, holds: bool) -> bool:
    """Print a claim and whether it holds, and pass that on."""
    print(f"{claim}: {'yes' if holds else 'no'}")
    return holds


def main() -> int:
    """Run all comparisons; 0 when every verdict is yes."""
    with tempfile.TemporaryDirectory() as folder:
        verdicts = [compare_help(Path(folder)), check_imports(), compare_show(Path(folder))]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
