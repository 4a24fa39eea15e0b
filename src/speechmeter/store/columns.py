"""The declared columns of `speechmeter query`: what each table has, of which type, and where it comes from."""

from __future__ import annotations

from typing import NamedTuple

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
"""Fields that a line may lack."""
LINE_MEASUREMENTS = {"measurements": f"{_MEASUREMENT}[]"}


class Column(NamedTuple):
    """A column that a query may name. `sql` is the expression that reads it from the lines; empty for computed rows."""

    name: str
    type: str
    meaning: str
    sql: str = ""


def _read(name: str, type_: str, meaning: str, sql: str = "") -> Column:
    """A column that is read from the lines, by default from the field of its own name."""
    return Column(name, type_, meaning, sql or name)


def _axis(name: str, type_: str, meaning: str) -> Column:
    return Column(name, type_, meaning, f"TRY_CAST(\"case\".axes->>'{name}' AS {type_})")


_CASE = (
    _read("run", "VARCHAR", "the run directory"),
    _read("case_id", "VARCHAR", "sixteen digits that identify the case", "id"),
    _read("subject", "VARCHAR", "the model's name in tables", '"case".subject.name'),
    _read("workload", "VARCHAR", "the input's name", '"case".workload.name'),
    _read("host", "VARCHAR", "name of the machine"),
    _axis("seconds", "DOUBLE", "seconds of audio in each item"),
    _axis("batch", "BIGINT", "batch size: utterances (or other inputs) in a call"),
    *(_axis(axis.name, _TYPES[axis.kind], axis.help) for axis in (*CORE_AXES, *SHARED_AXES)),
    _read("axes", "JSON", "every axis, including those of plug-ins: axes->>'vocabulary'", '"case".axes'),
)
RECORDS = (
    *_CASE,
    _read("subject_plugin", "VARCHAR", "the model's plug-in", '"case".subject.plugin'),
    _read("subject_source", "VARCHAR", "what the plug-in loads", '"case".subject.source'),
    _read("workload_plugin", "VARCHAR", "the input's plug-in", '"case".workload.plugin'),
    _read("meters", "VARCHAR[]", "meters that the plan requested", '"case".meters'),
    _read("protocol", "JSON", "how samples were taken: warm-up, number of samples, seed, …", '"case".protocol'),
    _read("round", "BIGINT", "number of the round, from 0"),
    _read("sequence", "BIGINT", "order in which the records of a lane were measured, from 0"),
    _read(
        "lane", "VARCHAR", "host and device that measured it; empty if the run has only one",
        "coalesce(lane, '')",
    ),
    _read("status", "VARCHAR", "ok, skipped, oom, timeout, crashed, error or unavailable"),
    _read("reason", "VARCHAR", "what happened, if the status is not ok"),
    _read("environment", "VARCHAR", "id of the environment, a row of `environments`"),
    _read("started", "TIMESTAMP", "when the round started, in UTC", "TRY_CAST(started AS TIMESTAMP)"),
    _read("wall_s", "DOUBLE", "seconds for all processes of the round"),
    _read("stop_reason", "VARCHAR", "why sampling ended"),
    _read("warnings", "VARCHAR[]", "warnings about the measurement"),
)  # fmt: skip
_AGGREGATES = (
    ("median", "median", "median"),
    ("mean", "avg", "mean"),
    ("minimum", "min", "least"),
    ("maximum", "max", "largest"),
    ("sd", "stddev_samp", "standard deviation"),
)
MEASUREMENTS = (
    *_CASE,
    _read("round", "BIGINT", "number of the round, from 0"),
    _read("environment", "VARCHAR", "id of the environment, a row of `environments`"),
    _read("metric", "VARCHAR", "id with version, such as latency.v1", "m.metric"),
    _read("unit", "VARCHAR", "unit of the metric", "m.unit"),
    _read("scope", "VARCHAR", "total, stage:NAME, module:PATH, …", "m.scope"),
    _read("values", "DOUBLE[]", "raw readings in order", 'm."values"'),
    _read("n", "BIGINT", "number of readings", 'len(m."values")'),
    *(
        _read(name, "DOUBLE", f"{word} of the readings of this round", f"list_aggregate(m.\"values\", '{function}')")
        for name, function, word in _AGGREGATES
    ),
    _read("source", "VARCHAR", "where the readings come from, such as perf_counter", "m.source"),
    _read("unavailable", "VARCHAR", "the reason why there is no value", "m.unavailable"),
    _read("notes", "JSON", "facts about the reading", "m.notes"),
)
ESTIMATES = (
    *(column._replace(sql="") for column in _CASE),
    Column("metric", "VARCHAR", "id with version, such as rtf.v2"),
    Column("unit", "VARCHAR", "unit of the metric"),
    Column("scope", "VARCHAR", "total, stage:NAME, module:PATH, …"),
    Column("value", "DOUBLE", "the value that `show` prints"),
    Column("low", "DOUBLE", "lower end of its 95 % interval"),
    Column("high", "DOUBLE", "upper end of the interval"),
    Column("rounds", "BIGINT", "number of rounds that the value is computed from"),
    Column("failed", "BIGINT", "number of rounds that failed"),
    Column("samples", "BIGINT", "smallest number of samples in a round; for scores, number of utterances"),
    Column("statistic", "VARCHAR",
           "geomean, mean or ratio of means over rounds; for scores, how the interval was made"),
)  # fmt: skip
ENVIRONMENTS = (
    Column("run", "VARCHAR", "the run directory"),
    Column("environment", "VARCHAR", "id of the environment: a hash of its facts"),
    Column("host", "VARCHAR", "name of the machine"),
    Column("cpu", "VARCHAR", "the processor's name"),
    Column("cores_total", "BIGINT", "number of cores"),
    Column("memory_bytes", "BIGINT", "size of the memory"),
    Column("gpu", "VARCHAR", "the GPU's name, for CUDA cases"),
    Column("system", "VARCHAR", "operating system"),
    Column("python", "VARCHAR", "version of Python"),
    Column("packages", "JSON", "versions: packages->>'torch'"),
    Column("facts", "JSON", "all recorded facts about the environment"),
    Column("state", "JSON", "load, free memory and clock when the first record was written"),
)
TABLES = {"records": RECORDS, "measurements": MEASUREMENTS, "estimates": ESTIMATES, "environments": ENVIRONMENTS}
"""The tables of a query and their columns."""
