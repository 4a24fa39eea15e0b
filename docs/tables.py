"""Write the tables of the documentation that are made from the code: `make docs`, or `python docs/tables.py`."""

import re
from pathlib import Path

from speechmeter.core import metrics
from speechmeter.report.views import chart_rows, markdown_rows

DOCS = Path(__file__).parent
BETTER = {"lower": "lower", "higher": "higher", "neither": "–"}


def metric_table() -> str:
    """One row a metric, with its short definition; metrics that differ in the device alone share one."""
    own = {value.id: value for value in vars(metrics).values() if isinstance(value, metrics.Metric)}
    own |= {metric.id: metric for metric in metrics.ENERGY_PER_AUDIO_HOUR.values()}
    rows = [
        f"| `{metric.id}` | {metric.unit} | {BETTER[metric.direction]} | {metric.definition.replace('|', '/')} |"
        for metric in own.values()
    ]
    return "\n".join(["| id | unit | better | definition |", "|---|---|---|---|", *rows])


TABLES = {
    "metrics/index.md": {"metrics": metric_table},
    "cli.md": {"views": lambda: f"| `--metric` | shows | `plot --kind` |\n|---|---|---|\n{markdown_rows()}"},
    "report.md": {"charts": lambda: f"| `--kind` | draws | needs |\n|---|---|---|\n{chart_rows()}"},
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
