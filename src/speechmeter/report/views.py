"""The views of a run, each described once: `show`, `plot`, the page, `--help` and docs/cli.md are made from here.

Every command imports this file, also for `--help`. So it imports no other file of the report; a view names
its function.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from speechmeter.report.tables import Table

_HELP_WIDTH = 78


@dataclass(frozen=True, kw_only=True)
class Cases:
    """Why a run has no figures for a view, after "this run", and the flags of `speechmeter run` that change it."""

    lack: str
    flags: str


@dataclass(frozen=True, kw_only=True)
class View:
    """What a run can be asked for, by the word after `show --metric`."""

    name: str
    summary: str
    """One plain sentence for `--help` and the documentation."""
    details: str = ""
    """Markdown that follows the summary in docs/cli.md: options and links."""
    tables: str | None = None
    """`file:function` below `speechmeter.report`, which makes its tables of records; None for the grid of a metric."""
    takes: Literal["statistic", "assumed", "wanted", "at"] | None = None
    """The argument of `choose.tables` that the function takes after the records."""
    meters: tuple[str, ...] = ()
    """The meters that its tables are made from."""
    or_meter: str | None = None
    """A meter that also suffices. A refusal proposes it instead of the others."""
    whole: bool = False
    """Whether it is refused without its meters even where other columns have figures."""
    cases: Cases | None = None
    """For a view that needs other cases, not other meters."""
    chart: str | None = None
    """The word of `plot --kind` that draws it; the page has a section of that name."""
    shown_for: str | None = None
    """The built-in meter whose first figure it is when nothing is asked for."""
    in_show: bool = True
    """False for a view that can only be drawn."""

    def function(self) -> Callable[..., list[Table]]:
        """The function that `tables` names. Raises ValueError for a view that has none."""
        if self.tables is None:
            raise ValueError(f"the view {self.name} has no function")
        file, _, name = self.tables.partition(":")
        made: Callable[..., list[Table]] = getattr(import_module(f"speechmeter.report.{file}"), name)
        return made


VIEWS = (
    View(name="rtf", summary="Real-time factor, as a grid of seconds by batch.", chart="grid", shown_for="latency"),
    View(name="rtfx", summary="Inverse real-time factor, as a grid of seconds by batch."),
    View(name="latency", summary="Time of a call, as a grid of seconds by batch."),
    View(name="throughput", summary="Throughput, as a grid of seconds by batch."),
    View(
        name="memory",
        summary="One grid of seconds by batch for each kind of memory in the run.",
        details="All sizes of a grid are in one unit.",
        shown_for="memory",
    ),
    View(
        name="parameters",
        summary="One row per model: its parameters.",
        tables="lists:parameters",
        meters=("parameters",),
        chart="parameters",
        shown_for="parameters",
    ),
    View(
        name="flops",
        summary="One row per case: FLOPs, FLOPs per audio second and per token, backward, element operations, "
        "bytes moved.",
        details="Below the table: how they were counted.",
        tables="arithmetic:flops",
        meters=("flops",),
        shown_for="flops",
    ),
    View(
        name="operators",
        summary="One row per case and operator, the 20 costliest and all unknown ones: time, FLOPs, element "
        "operations.",
        details="`--sort KEY` orders them by `own-time`, `total-time`, `calls`, `own-memory`, `memory`, `flops` or "
        "`name`, with all these figures; `--limit N` lists N of each case and says how many are left out.",
        tables="arithmetic:operators",
        meters=("operators",),
    ),
    View(
        name="operators-by-module",
        summary="One row per case, module and operator, the 20 costliest.",
        tables="operators:operators_by_module",
        meters=("operators",),
    ),
    View(
        name="coverage",
        summary="One row per case: time in operators, and the share of each kind of operator.",
        details="See [kinds of operators](metrics/flops.md#kinds-of-operators-and-coverage).",
        tables="arithmetic:coverage",
        meters=("operators",),
        shown_for="operators",
    ),
    View(
        name="utilisation",
        summary="One row per case and stage: share of the measured peaks.",
        tables="arithmetic:utilisation",
        meters=("latency", "flops", "peaks"),
        shown_for="peaks",
    ),
    View(
        name="energy",
        summary="One table each for GPU, processor and system, as far as they were asked for.",
        tables="energy:energy",
        takes="assumed",
        meters=("energy",),
        chart="energy",
        shown_for="energy",
    ),
    View(
        name="quality",
        summary="One row per system: scores with intervals, cost, whether it is on the front; then differences by "
        "pairs.",
        details="See [quality](metrics/quality.md).",
        tables="quality:quality",
        meters=("quality",),
        whole=True,
        chart="front",
        shown_for="quality",
    ),
    View(
        name="losses",
        summary="Transducer losses, ranked: time, memory and the ratio to the least time that the device allows.",
        details="See [transducer losses](losses.md).",
        tables="losses:losses",
        cases=Cases(lack="measured no transducer loss", flags="--set losses='[ours, torchaudio]'"),
        chart="losses",
        shown_for="agreement",
    ),
    View(
        name="split",
        summary="One row per case: time by kind of work, idle GPU, latency over its busy time.",
        details="See [phases](profiling.md#phases).",
        tables="phases:split",
        meters=("split",),
        shown_for="split",
    ),
    View(
        name="modules",
        summary="Where the time of a call goes: in the plan's rows, by label, as a tree of modules and by class.",
        details="`--filter PATTERN` lists labels and [modules](metrics/modules.md) that fit, by the names that are "
        "printed or by whole paths. Without the meter `modules`: FLOPs and parameters by module.",
        tables="arithmetic:modules",
        takes="wanted",
        meters=("flops",),
        or_meter="modules",
        chart="modules",
        shown_for="modules",
    ),
    View(
        name="timeline",
        summary="One row per case and module: what was held at the peak of memory.",
        details="See [memory over time](profiling.md#memory-over-time).",
        tables="timeline:timeline",
        meters=("timeline",),
        chart="memory",
        shown_for="timeline",
    ),
    View(
        name="trace",
        summary="One row per case: the file of its trace, and what was left out of it.",
        details="See [traces](profiling.md#traces).",
        tables="traces:traces",
        meters=("trace",),
        shown_for="trace",
    ),
    View(
        name="cold-start",
        summary="One row per case: load, first call, steady call.",
        tables="lists:cold_start",
        chart="cold-start",
    ),
    View(
        name="stages",
        summary="One row per case and stage: latency, and memory, weights and FLOPs where they were measured.",
        tables="lists:stages",
        chart="stages",
    ),
    View(
        name="summary",
        summary="One row per case: parameters, latency, real-time factor, FLOPs, memory, energy, tokens, as far as "
        "they were measured.",
        tables="overview:summary",
        takes="statistic",
    ),
    View(
        name="cascades",
        summary="One row per case and model of a cascade: latency, real-time factor, FLOPs, memory, tokens.",
        details="See [cascades](cascades.md).",
        tables="overview:cascades",
    ),
    View(
        name="relations",
        summary="How alike models rank by two figures: Spearman's rank correlation with its interval, for each cell.",
        tables="overview:relations",
        cases=Cases(lack="has too few models to rank by two figures", flags="--set models='[A, B, C, D]'"),
    ),
    View(
        name="utterances",
        summary="Of a dataset with one utterance a call: mean, median, p95 and maximum of latency, RTF, memory and "
        "FLOPs.",
        details="In total and by part. Batched cases are named below the table.",
        tables="utterances:utterances",
        cases=Cases(lack="has no dataset with one utterance a call", flags="--data LIST --batch 1"),
    ),
    View(
        name="frontier",
        summary="One row per model and length: the largest batch, seconds or frames that fit, and what did not.",
        details="See [the frontier](search.md#the-frontier).",
        tables="frontier:frontier",
        cases=Cases(lack="searched for no largest size", flags="--batch 1 --find max-batch"),
        chart="frontier",
    ),
    View(
        name="growth",
        summary="One row per figure and axis: how it grows with seconds and batch; then the saturating batch.",
        details="[Exponents, quadratic part](search.md#growth), and what to expect at the sizes of `--at seconds=60`.",
        tables="growth:growth",
        takes="at",
        cases=Cases(lack="has no case at several lengths or batch sizes", flags="--seconds 1,2,4,8"),
        chart="scaling",
    ),
    View(
        name="inputs",
        summary="One row per case and figure: noise against real audio, their ratio with its interval, and whether "
        "they differ.",
        details="The interval is by pairs. See [audio](plans.md#audio).",
        tables="inputs:inputs",
        cases=Cases(lack="measured no case on noise and on real audio", flags="--set audio='[noise, sample]'"),
    ),
    View(
        name="methods",
        summary="No table: the set-up of the run as a paragraph for a paper, and the BibTeX entry of Speechmeter.",
        details="See [methods](#methods).",
    ),
    View(
        name="machines", summary="Cells that several machines measured, with ratios.", chart="machines", in_show=False
    ),
)
"""In the order in which they are listed, and in which first figures are shown."""
BESIDE = View(
    name="beside",
    summary="Real-time factor with busy time beside the wall time: `show --split`.",
    meters=("latency", "split"),
    whole=True,
)
TABLES = {view.name: view for view in VIEWS if view.tables is not None}
CHARTS = tuple(view.chart for view in VIEWS if view.chart is not None)


def help_lines() -> str:
    """The words of `--metric` with their summaries, for the end of `show --help`."""
    shown = [view for view in VIEWS if view.in_show]
    margin = " " * (4 + max(len(view.name) for view in shown))
    listed = [
        textwrap.fill(view.summary, _HELP_WIDTH, initial_indent=f"  {view.name}".ljust(len(margin)),
                      subsequent_indent=margin, break_on_hyphens=False)
        for view in shown
    ]  # fmt: skip
    return "\n".join(["\b", "Words of --metric:", *listed])  # after \b lines are kept as they are


def markdown_rows() -> str:
    """The rows of the table of views in docs/cli.md."""
    return "\n".join(
        f"| {f'`{view.name}`' if view.in_show else ''} | {f'{view.summary} {view.details}'.rstrip()} "
        f"| {f'`{view.chart}`' if view.chart else ''} |"
        for view in VIEWS
    )
