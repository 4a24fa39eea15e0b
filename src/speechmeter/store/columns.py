"""The declared columns of `speechmeter query`: what each table has, of which type, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from speechmeter.core.axes import CORE_AXES, SHARED_AXES

_TYPES = {int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", str: "VARCHAR"}
_SPEC = "STRUCT(plugin VARCHAR, name VARCHAR, source VARCHAR)"
_MEASUREMENT = (
    'STRUCT(metric VARCHAR, unit VARCHAR, scope VARCHAR, "values" DOUBLE[], source VARCHAR, notes JSON, '
    "unavailable VARCHAR)"
)

LINE = {
    "schema": "INTEGER",
    "id": "VARCHAR",
    "case": f"STRUCT(subject {_SPEC}, workload {_SPEC}, axes JSON, meters VARCHAR[], protocol JSON)",
    "round": "BIGINT",
    "sequence": "BIGINT",
    "status": "VARCHAR",
    "reason": "VARCHAR",
    "host": "VARCHAR",
    "lane": "VARCHAR",
    "environment": "VARCHAR",
    "started": "VARCHAR",
    "wall_s": "DOUBLE",
    "stop_reason": "VARCHAR",
    "warnings": "VARCHAR[]",
}
"""A line of `records.jsonl` as DuckDB reads it, without its measurements."""
OPTIONAL = frozenset({"lane"})
"""What a line may lack."""
LINE_MEASUREMENTS = {"measurements": f"{_MEASUREMENT}[]"}


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column that a query may name. `sql` is what it is made from in the lines; empty where rows are given."""

    name: str
    type: str
    meaning: str
    sql: str = ""


def _own(name: str, type_: str, meaning: str, sql: str = "") -> Column:
    return Column(name=name, type=type_, meaning=meaning, sql=sql or name)


def _axis(name: str, type_: str, meaning: str) -> Column:
    return _own(name, type_, meaning, f"TRY_CAST(\"case\".axes->>'{name}' AS {type_})")


_AXES = (
    _axis("seconds", "DOUBLE", "seconds of audio of an item"),
    _axis("batch", "BIGINT", "items a call"),
    *(_axis(axis.name, _TYPES[axis.kind], axis.help) for axis in (*CORE_AXES, *SHARED_AXES)),
    _own("axes", "JSON", "every axis, those of plug-ins too: axes->>'vocabulary'", '"case".axes'),
)
_CASE = (
    _own("run", "VARCHAR", "the run directory"),
    _own("case_id", "VARCHAR", "sixteen digits that name the case", "id"),
    _own("subject", "VARCHAR", "the model's name in tables", '"case".subject.name'),
    _own("workload", "VARCHAR", "what it was fed", '"case".workload.name'),
    _own("host", "VARCHAR", "name of the machine"),
    *_AXES,
)
RECORDS = (
    *_CASE,
    _own("subject_plugin", "VARCHAR", "the model's plug-in", '"case".subject.plugin'),
    _own("subject_source", "VARCHAR", "what the plug-in was told to load", '"case".subject.source'),
    _own("workload_plugin", "VARCHAR", "the input's plug-in", '"case".workload.plugin'),
    _own("meters", "VARCHAR[]", "meters that were asked for", '"case".meters'),
    _own("protocol", "JSON", "how samples were taken", '"case".protocol'),
    _own("round", "BIGINT", "from 0"),
    _own("sequence", "BIGINT", "order in time within the lane"),
    _own(
        "lane",
        "VARCHAR",
        "device that measures one case at a time; empty where the run has only one",
        "coalesce(lane, '')",
    ),
    _own("status", "VARCHAR", "ok, skipped, oom, timeout, crashed, error or unavailable"),
    _own("reason", "VARCHAR", "what happened, where it is not ok"),
    _own("environment", "VARCHAR", "fingerprint of a row of `environments`"),
    _own("started", "TIMESTAMP", "UTC", "TRY_CAST(started AS TIMESTAMP)"),
    _own("wall_s", "DOUBLE", "seconds for all processes of the round"),
    _own("stop_reason", "VARCHAR", "why sampling ended"),
    _own("warnings", "VARCHAR[]", "what a reader should know"),
)
MEASUREMENTS = (
    *_CASE,
    _own("round", "BIGINT", "from 0"),
    _own("environment", "VARCHAR", "fingerprint of a row of `environments`"),
    _own("metric", "VARCHAR", "id with version, such as latency.v1", "m.metric"),
    _own("unit", "VARCHAR", "that of the metric", "m.unit"),
    _own("scope", "VARCHAR", "total, stage:NAME, module:PATH, …", "m.scope"),
    _own("values", "DOUBLE[]", "raw readings in order", 'm."values"'),
    _own("n", "BIGINT", "how many readings", 'len(m."values")'),
    *(
        _own(name, "DOUBLE", f"{word} of the readings of this round", f"list_aggregate(m.\"values\", '{function}')")
        for name, function, word in (
            ("median", "median", "median"),
            ("mean", "avg", "mean"),
            ("minimum", "min", "least"),
            ("maximum", "max", "largest"),
            ("sd", "stddev_samp", "standard deviation"),
        )
    ),
    _own("source", "VARCHAR", "where they were read", "m.source"),
    _own("unavailable", "VARCHAR", "the reason, where there is no value", "m.unavailable"),
    _own("notes", "JSON", "facts about the reading", "m.notes"),
)
ESTIMATES = (
    *(Column(name=column.name, type=column.type, meaning=column.meaning) for column in _CASE),
    Column(name="metric", type="VARCHAR", meaning="id with version, such as rtf.v2"),
    Column(name="unit", type="VARCHAR", meaning="that of the metric"),
    Column(name="scope", type="VARCHAR", meaning="total, stage:NAME, module:PATH, …"),
    Column(name="value", type="DOUBLE", meaning="the figure that `show` prints"),
    Column(name="low", type="DOUBLE", meaning="lower end of its 95 % interval"),
    Column(name="high", type="DOUBLE", meaning="upper end"),
    Column(name="rounds", type="BIGINT", meaning="rounds behind it"),
    Column(name="failed", type="BIGINT", meaning="further rounds of the case that failed"),
    Column(name="samples", type="BIGINT", meaning="least samples of a round; of scores, utterances"),
    Column(
        name="statistic",
        type="VARCHAR",
        meaning="geomean, mean or ratio of means over rounds; of scores, how the interval was made",
    ),
)
ENVIRONMENTS = (
    Column(name="run", type="VARCHAR", meaning="the run directory"),
    Column(name="environment", type="VARCHAR", meaning="fingerprint over the facts"),
    Column(name="host", type="VARCHAR", meaning="name of the machine"),
    Column(name="cpu", type="VARCHAR", meaning="the processor's name"),
    Column(name="cores_total", type="BIGINT", meaning="its cores"),
    Column(name="memory_bytes", type="BIGINT", meaning="its memory"),
    Column(name="gpu", type="VARCHAR", meaning="the GPU's name, for CUDA cases"),
    Column(name="system", type="VARCHAR", meaning="operating system"),
    Column(name="python", type="VARCHAR", meaning="version of Python"),
    Column(name="packages", type="JSON", meaning="versions: packages->>'torch'"),
    Column(name="facts", type="JSON", meaning="everything that is known of it"),
    Column(name="state", type="JSON", meaning="load, free memory and clock with the first record"),
)
TABLES = {
    "records": RECORDS,
    "measurements": MEASUREMENTS,
    "estimates": ESTIMATES,
    "environments": ENVIRONMENTS,
}
"""The tables of a query and their columns."""
