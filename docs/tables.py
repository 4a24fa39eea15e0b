"""Write the tables of the documentation that are made from the code: `make docs`, or `python docs/tables.py`."""

import ast
import json
import re
from functools import partial
from pathlib import Path

import commands

import speechmeter
from speechmeter.analysis.live.measure import READERS, SPEECH_READERS
from speechmeter.core import metrics, plugins, stated
from speechmeter.report.views import markdown_list

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples/runs"
SHOWN_MEASUREMENTS = ("latency.v1", "memory_cpu_peak.v1")
BETTER = {"lower": " ↓", "higher": " ↑", "neither": ""}
SENSORS = re.compile(r"(?:the )?(?:GPU|processor|system)(?=[,; ]|$)")


def metric_list() -> str:
    """A line for each definition, by meter; those that differ in the sensor or in the score alone share one."""
    own = {value.id: value for value in vars(metrics).values() if isinstance(value, metrics.Metric)}
    own |= {metric.id: metric for metric in metrics.ENERGY_PER_AUDIO_HOUR.values()}
    owners: dict[str, str] = {}
    for name in sorted(plugins.names(plugins.METERS), key=lambda name: (name != "latency", name)):
        for metric in plugins.meter(name).metrics:
            owners.setdefault(metric.id, f"Meter `{name}`")
    groups: dict[str, dict[tuple[str, str], list[str]]] = {owner: {} for owner in owners.values()}
    for metric in (own[id] for id in own if id not in live_metrics()):
        owner = owners.get(metric.id, "Derived from these, or recorded with every case")
        groups.setdefault(owner, {}).setdefault(_definition(metric), []).append(f"`{metric.id}`")
    return "\n".join(
        f"\n**{owner}**\n\n" + "\n".join(f"- {', '.join(ids)}{unit}: {text}" for (unit, text), ids in lines.items())
        for owner, lines in groups.items()
    ).strip()


def live_metrics() -> dict[str, str]:
    """Name by id of the metrics of live cases, which have a page of their own."""
    every = [value for value in vars(metrics).values() if isinstance(value, metrics.Metric)]
    starts = ("live_", "client_")
    named = (one for one in every if one.id.startswith(starts))
    return {one.id: one.name for one in (*READERS, *speech_metrics(), *named)}


def speech_metrics() -> tuple[metrics.Metric, ...]:
    """The metrics of systems that speak, which have a page of their own."""
    return (*SPEECH_READERS, metrics.FIRST_SOUND_COLD)


def speech_list() -> str:
    """A line for each of these."""
    rows = [(f"`{one.name}`", *_definition(one)) for one in speech_metrics()]
    head = ["| metric | definition |", "|---|---|"]
    return "\n".join([*head, *(f"| {name}{unit} | {text} |" for name, unit, text in rows)])


def stated_list() -> str:
    """A line for each figure of another tool, by tool."""
    parts = []
    for tool, those in stated.TOOLS.items():
        found = [metrics.STATED[one.name] for one in those]
        lines = [f"- `{one.id}`{_definition(one)[0]}: {one.formula}" for one in found]
        parts.append("\n".join([f"**{tool}**", "", *lines]))
    return "\n\n".join(parts)


def _definition(metric: metrics.Metric) -> tuple[str, str]:
    text = metric.definition.replace("|", "/")
    if metric.id.startswith(("energy_", "power_")) and metric.id != metrics.ENERGY_TDP.id:
        text = SENSORS.sub("the device", text)
    elif "_difference." in metric.id:
        text = re.sub(r"^\w+", "score", text)
    unit = "" if metric.unit == "1" else f" [{metric.unit}]"
    return f"{unit}{BETTER[metric.direction]}", text


def record() -> str:
    """The first measured record of an example run, with some of its measurements and values."""
    lines = map(json.loads, (EXAMPLES / "cpu-grid/records.jsonl").read_text().splitlines())
    found = next(line for line in lines if line["status"] == "ok")
    some = [one for one in found["measurements"] if one["scope"] == "total" and one["metric"] in SHOWN_MEASUREMENTS]
    rows = [json.dumps(one | {"values": one["values"][:3]}, ensure_ascii=False) for one in some]
    case = [f'"{key}": {json.dumps(value)}' for key, value in found["case"].items()]
    made = {key: json.dumps(value, ensure_ascii=False) for key, value in found.items()}
    made |= {"case": _lines("{", case, "}"), "measurements": _lines("[", rows, "]")}
    return "```json\n{\n  " + ",\n  ".join(f'"{key}": {text}' for key, text in made.items()) + "\n}\n```"


def _lines(begin: str, rows: list[str], end: str) -> str:
    return f"{begin}\n    " + ",\n    ".join(rows) + f"\n  {end}"


def losses(part: str) -> str:
    """The ranking of transducer losses in an example run, the columns that matter."""
    text = speechmeter.load(EXAMPLES / "h200-losses").table("losses", format="markdown")
    table = text.partition(f"### {part}\n\n")[2].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    chosen = [rows[0].index(name) for name in ("loss", "mean step [µs]", "peak [MiB]", "deviation of the gradient")]
    kept = [[row[index] for index in chosen] for row in rows if row[chosen[1]] != "–" and ":--" not in row[0]]
    head, *body = [f"| {' | '.join(row)} |" for row in kept]
    return "\n".join([head, "|:--|--:|--:|--:|", *body])


def example(name: str) -> str:
    """A class of the example of a plug-in, as its file has it."""
    source = (DOCS.parent / "examples/plugin/loudness.py").read_text()
    (found,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name)
    return f"```python\n{ast.get_source_segment(source, found)}\n```"


TABLES = {
    "howto/plugins.md": {"subject": partial(example, "RmsSubject")},
    "reference/records.md": {"record": record},
    "explanation/losses.md": {"whole step": partial(losses, "whole step")},
    "contributing/evidence.md": {"loss alone": partial(losses, "loss alone")},
    "reference/metrics/index.md": {"metrics": metric_list},
    "reference/metrics/speech.md": {"speech metrics": speech_list},
    "howto/results.md": {"stated": stated_list},
    "reference/cli.md": {"commands": commands.reference},
    "reference/tables.md": {
        "views": markdown_list,
    },
}
"""For each page the tables in it, by the name in the marks around them."""


def filled(page: str) -> str:
    """The text of a page with its tables made anew. Raises ValueError for a page without the marks."""
    text = (DOCS / page).read_text()
    for name, make in TABLES[page].items():
        marks = re.compile(rf"(<!-- table: {name} -->\n).*?(\n<!-- end of table -->)", re.DOTALL)
        text, count = marks.subn(lambda found, make=make: found[1] + "\n" + make() + "\n" + found[2], text)
        if count != 1:
            raise ValueError(
                f"{page} needs `<!-- table: {name} -->` and `<!-- end of table -->` once, not {count} times"
            )
    return text


def main() -> None:
    """Write every page that has such tables."""
    for page in TABLES:
        (DOCS / page).write_text(filled(page))


if __name__ == "__main__":
    main()
