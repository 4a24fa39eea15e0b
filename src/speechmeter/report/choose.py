"""From the word after `--metric` to tables: those of a view, grids of a metric, or the first figures of each meter."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from speechmeter.analysis.derived import lacking
from speechmeter.analysis.live.samples import is_live
from speechmeter.analysis.metric_names import METHODS, metric_named
from speechmeter.analysis.stated import is_imported
from speechmeter.core import metrics, plugins
from speechmeter.core.errors import InputError, command_line
from speechmeter.core.metrics import Metric
from speechmeter.core.slo import Slo
from speechmeter.core.tuning import Tuning
from speechmeter.core.types import Record
from speechmeter.report.caveats import with_caveats
from speechmeter.report.frontier import searched
from speechmeter.report.grids import grids, split_rtf
from speechmeter.report.growth import At
from speechmeter.report.live import hearing_groups, live_groups, one_metric
from speechmeter.report.losses import is_loss, losses
from speechmeter.report.modules import modules
from speechmeter.report.overview import summary
from speechmeter.report.speech import speaking_groups
from speechmeter.report.tables import NOT_MEASURED, Table, with_notes
from speechmeter.report.views import BESIDE, TABLES, VIEWS, View

WORDS = (*TABLES, "memory")
"""Words of `--metric` beside the metrics' own names."""
_ON_CUDA = (metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_CUDA_RESERVED)
_MEMORY = (metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK, *_ON_CUDA)
_FIRST = {view.shown_for: view.name for view in VIEWS if view.shown_for is not None}
"""What is shown of each built-in meter when nothing is asked for, in this order."""
_TOP = 10
"""So many operators of each case are listed when nothing is asked for."""
_OPTIONS = {"sort": "sort", "limit": "limit", "at": "at", "wanted": "filter", "assumed": "assume",
            "slo": "slo"}  # fmt: skip
"""Options that only some views take, with the key that a user knows them by."""


def tables(
    records: Sequence[Record],
    metric: str | None,
    statistic: str = "geomean",
    assumed: Mapping[str, float] | None = None,
    wanted: str | None = None,
    *,
    beside: bool = False,
    at: At = (),
    sort: str | None = None,
    limit: int | None = None,
    slo: Slo | None = None,
    tuning: Tuning | None = None,
    where: str | None = None,
) -> list[Table]:
    """The tables of one metric; without one the headline of the study, then each meter's first figure, plug-ins last.

    `assumed` are rates that the reader states for figures of energy (see `analysis.assumed`), `wanted` is a pattern
    for the modules that are listed, and `beside` puts busy time of CPU and GPU beside the wall time of a real-time
    factor. `at` are sizes for the table of growth; `sort` and `limit` are for the table of operators, `slo` is for that
    of capacity, which comes first where nothing is asked for. `tuning` is what the run was tuned for: without a metric
    its answer is shown alone. Raises InputError for an option that the view does not
    take. `where` is what gave the metric, for messages.
    """
    given = {"statistic": statistic, "assumed": assumed, "wanted": wanted, "at": at, "sort": sort, "limit": limit,
             "slo": slo, "tuning": tuning}  # fmt: skip
    _check_options(metric, given)
    asked = dict.fromkeys(name for record in records for name in record.case.meters)
    plugged = [metric.name for metric in _first_of_plugins(list(asked))]
    if beside:
        if metric not in (None, "rtf"):
            raise InputError(f"{metric} cannot be split", key="split", fix="use `metric: rtf`, or only `metric: split`")
        return _with_needs(split_rtf(records, statistic), BESIDE, records)
    if metric is None and tuning is not None:
        return tables(records, "tune", tuning=tuning)
    if metric is None:
        opening = tables(records, "capacity", slo=slo) if slo is not None else []
        return [*opening, *_first_figures(records, [*asked], plugged, statistic, assumed)]
    if metric in TABLES:
        view = TABLES[metric]
        found = view.function()(records, **{name: given[name] for name in view.takes})
        own = view.or_meter is not None and view.or_meter in asked
        return with_caveats(found if own else _with_needs(found, view, records), records)
    if metric == "memory":
        return _memory(records, statistic)
    named = metric_named(metric, records, where=where, also=(*WORDS, METHODS))
    if is_live(named) or named == metrics.LIVE_WER_DELTA:
        return with_caveats(one_metric(records, named, statistic), records)
    scopes = ["total"]
    if not any(record.find(named.id) for record in records):  # it was only measured in parts of a call
        held = dict.fromkeys(m.scope for record in records for m in record.measurements if m.metric == named.id)
        scopes = list(held) or scopes
    return [table for scope in scopes for table in grids(records, named, scope=scope, statistic=statistic)]


def _check_options(metric: str | None, given: Mapping[str, Any]) -> None:
    view = TABLES.get(metric or "")
    for option, key in _OPTIONS.items():
        # without a metric, the tables of energy and capacity are among those that are shown
        fits = (view is not None and option in view.takes) or (metric is None and option in ("assumed", "slo"))
        if given[option] and not fits:
            takers = [one.name for one in VIEWS if option in one.takes]
            views = f"view {takers[0]}" if len(takers) == 1 else f"views {' and '.join(takers)}"
            raise InputError(f"it applies to the {views} only", key=key, fix=f"add `metric: {takers[0]}`")


def _first_of_plugins(meters: Sequence[str]) -> list[Metric]:
    """The first metric of each installed plug-in meter; what it defines is registered by the way."""
    found = []
    for name in meters:
        if name not in _FIRST and name in plugins.names(plugins.METERS):
            with contextlib.suppress(InputError):
                found.append(plugins.meter(name).metrics[0])
    return found


def _with_needs(found: list[Table], view: View, records: Sequence[Record]) -> list[Table]:
    """The tables, with a line on the meters that would have filled them and were not asked for."""
    asked = {name for record in records for name in record.case.meters}
    missing = [meter for meter in view.meters if meter not in asked]
    if not missing:
        return found
    line = f"this table needs the {_meters(missing)}, which the run did not ask for"
    return [replace(table, notes=(*table.notes, line)) for table in found]


def _meters(names: Sequence[str]) -> str:
    return f"meter{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _first_figures(
    records: Sequence[Record],
    asked: Sequence[str],
    plugged: Sequence[str],
    statistic: str,
    assumed: Mapping[str, float] | None,
) -> list[Table]:
    """The headline of the study, then what is shown of each meter that the headline does not cover."""
    if others := [record for record in records if is_imported(record)]:
        rest = [record for record in records if not is_imported(record)]
        return [
            *tables(others, "imported"),
            *(_first_figures(rest, asked, plugged, statistic, assumed) if rest else ()),
        ]
    found, rest = [r for r in records if searched(r)], [r for r in records if not searched(r)]
    if found:
        return [*tables(found, "frontier"), *(tables(rest, None, statistic, assumed) if rest else ())]
    if held_live := live_groups(records):
        own = {record.case.id for group in held_live.values() for record in group}
        rest = [record for record in records if record.case.id not in own and record.case.live is None]
        views = {"live": hearing_groups(records), "speech": speaking_groups(records)}
        opening = [table for word, groups in views.items() if groups for table in tables(records, word)]
        return [*opening, *(_first_figures(rest, asked, plugged, statistic, assumed) if rest else ())]
    opening, covered = _headline(records, statistic)
    covered -= {"energy"} if assumed else set()
    held = [record for record in records if record.measurements]
    has_audio = not held or any(record.find(metrics.AUDIO_SECONDS.id) for record in held)
    words = _FIRST if has_audio else {**_FIRST, "latency": "latency"}
    made = with_caveats(opening, records)
    for word in [*(word for name, word in words.items() if name in asked and name not in covered), *plugged]:
        if word == "memory":
            made += _memory(records, statistic, growth=False)
        elif word == "rtf" and "split" in asked:
            made += split_rtf(records, statistic)
        else:
            made += tables(records, "operators", limit=_TOP) if word == "coverage" else []
            made += tables(records, word, statistic, assumed if word == "energy" else None)
    return made


def _headline(records: Sequence[Record], statistic: str) -> tuple[list[Table], frozenset[str]]:
    """The tables that a study was made for, and the meters that need none of their own after them.

    Transducer losses are ranked; training steps and other profiled calls begin with the shares of their modules;
    several models are in one table. Any other study has no headline: every meter has its own table.
    """
    if records and all(map(is_loss, records)):
        return losses(records), frozenset({"latency", "memory", "agreement"})
    if any(m.values for record in records for m in record.measurements if m.metric == metrics.TIME_MODULE.id):
        return modules(records), frozenset({"modules"})
    if len({record.case.subject.name for record in records if record.status != "skipped"}) > 1:
        (table,) = summary(records, statistic)
        more = "grids by input size and batch: show RUN --metric rtf, or latency, memory, flops, energy"
        covered = frozenset({"latency", "memory", "parameters", "flops", "energy"})
        return (with_notes([table], [more]), covered) if table.columns else ([], frozenset())
    return [], frozenset()


def _memory(records: Sequence[Record], statistic: str, *, growth: bool = True) -> list[Table]:
    """A grid for each kind of memory that these records are about; the CPU's when no record holds any.

    Without `growth` that of the CPU is left out where there is a total.
    """
    held = [metric for metric in _MEMORY if any(record.find(metric.id) for record in records)]
    if not growth and metrics.MEMORY_CPU_TOTAL in held:
        held = [metric for metric in held if metric != metrics.MEMORY_CPU_PEAK]
    made = []
    for kind in held or [_MEMORY[0]]:
        own = [record for record in records if record.case.device.is_cuda is (kind in _ON_CUDA)]
        made += grids(own, kind, statistic=statistic)
    return made


def refuse_absent(
    found: Sequence[Table], records: Sequence[Record], metric: str | None, run: Path, *, beside: bool = False
) -> None:
    """Raise InputError where a view has no figure because the run did not ask for it, or has no such cases.

    The error has the command that measures it. A view without figures whose meters were asked for is left alone: its
    cells say what became of them.
    """
    word = BESIDE.name if beside else metric
    if word is None or not records:
        return
    view = BESIDE if beside else next((view for view in VIEWS if view.name == word and word in WORDS), None)
    cells = [cell for table in found for row in table.rows for cell in row.cells]
    figures = any(one.estimate is not None for cell in cells for one in cell.figures)
    asked = list(dict.fromkeys(name for record in records for name in record.case.meters))
    if not figures and (word == "imported" or all(map(is_imported, records))):
        raise _no_import(records, word)
    missing = _missing(records, word, view, asked)
    if missing and ((view is not None and view.whole) or not figures):
        options = {"meters": ",".join(name for name in [*asked, *missing] if name != "trace")}
        options |= {"set": "trace=true"} if "trace" in missing else {}
        raise _refusal(f"this run did not ask for the {_meters(missing)}", options, records, word, run)
    if figures:
        return
    if view is not None and view.cases is not None:
        raise _refusal(f"this run {view.cases.lack}", view.cases.options, records, word, run)
    if {cell.word for cell in cells} <= {NOT_MEASURED, ""}:
        fix = f"it measured {', '.join(asked)}; see `metric: summary`"
        fix = "`metric: live` shows its live results" if live_groups(records) else fix
        raise InputError(f"no values of {word}: this run did not measure it", key="metric", fix=fix)


def _no_import(records: Sequence[Record], word: str) -> InputError:
    if all(map(is_imported, records)):
        fix = "`metric: imported` shows its figures"
        return InputError(f"no figures of {word}: this run was measured with other tools", key="metric", fix=fix)
    fix = f"read their files with: {command_line('import', 'FILE', output='RUN')}"
    return InputError(f"no figures of {word}: this run has no imported figures of another tool", key="metric", fix=fix)


def _missing(records: Sequence[Record], word: str, view: View | None, asked: Sequence[str]) -> list[str]:
    """The meters of a view, or of a metric that is no view, that no case asked for."""
    if view is not None and view.or_meter is not None:
        return [] if {*asked} & {*view.meters, view.or_meter} else [view.or_meter]
    if view is not None:
        return [name for name in view.meters if name not in asked]
    needed = {need.id for need in lacking(records, metric_named(word, records))}
    meters = plugins.names(plugins.METERS) if needed else []
    measuring = [name for name in meters if any(own.id in needed for own in plugins.meter(name).metrics)]
    return [name for name in measuring[:1] if name not in asked]


def _refusal(reason: str, options: Mapping[str, str], records: Sequence[Record], word: str, run: Path) -> InputError:
    split = word == BESIDE.name
    plan = shlex.quote(str(run / "plan.yaml")) if (run / "plan.yaml").is_file() else "PLAN.yaml"
    known = set(plugins.names(plugins.SUBJECTS))
    plugged = [record.case.subject for record in records if record.case.subject.plugin in known]
    more: dict[str, str | bool] = {key: shlex.quote(value) for key, value in options.items()}
    more |= {"trust": True} if any(plugins.runs_code(one.plugin, one.options) for one in plugged) else {}
    new = shlex.quote(f"{str(run).rstrip('/')}-{'split' if split else word}")
    command = command_line("run", plan, **more, output=new)
    reason = f"no figures of {'busy time' if split else word}: {reason}"
    return InputError(reason, key="split" if split else "metric", fix=f"measure it with: {command}")
