"""The views of a run, each described once: `show`, `plot`, the page, `--help` and the documentation are made from here.

Every command imports this file, also for `--help`. So it imports no other file of the report; a view names
its functions.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_HELP_WIDTH = 78


def _named(name: str) -> Callable[..., Any]:
    """The function of the report that is called `file:function`."""
    file, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"speechmeter.report.{file}"), function)
    return found


@dataclass(frozen=True, kw_only=True)
class Chart:
    """How a view is drawn: as figures of `plot --kind NAME`, and as a section of the page."""

    name: str
    draws: str
    """`file:function` below `speechmeter.report`: from a source to its figures."""
    needs: str
    """What a run needs for it."""
    title: str
    """The heading of its section."""
    text: str
    """What it shows, in one sentence."""
    on_paper: str | None = None
    """The function for a file, where that has other figures than the page."""
    on_page: str | None = None
    """The function for the page, where that has more figures than a file."""
    together: bool = False
    """Whether the function takes all sources at once."""
    words: bool = False
    """Whether `on_paper` takes all sources, and the words behind the name: `scaling:batch:memory`."""

    def function(self, *, page: bool) -> Callable[..., Any]:
        """What draws it."""
        return _named((self.on_page if page else self.on_paper) or self.draws)


@dataclass(frozen=True, kw_only=True)
class Cases:
    """Why a run has no figures for a view, after "this run", and the options of `speechmeter run` that change it."""

    lack: str
    options: Mapping[str, str]


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
    takes: tuple[str, ...] = ()
    """The options of `choose.tables` that the function takes after the records. Other views refuse some of them."""
    meters: tuple[str, ...] = ()
    """The meters that its tables are made from."""
    or_meter: str | None = None
    """A meter that also suffices. A refusal proposes it instead of the others."""
    whole: bool = False
    """Whether it is refused without its meters even where other columns have figures."""
    cases: Cases | None = None
    """For a view that needs other cases, not other meters."""
    chart: Chart | None = None
    shown_for: str | None = None
    """The built-in meter whose first figure it is when nothing is asked for."""
    in_show: bool = True
    """False for a view that can only be drawn."""

    def function(self) -> Callable[..., Any]:
        """What makes its tables. Raises ValueError for a view that has no function."""
        if self.tables is None:
            raise ValueError(f"the view {self.name} has no function")
        return _named(self.tables)


VIEWS = (
    View(
        name="rtf",
        summary="Real-time factor, as a grid of seconds by batch.",
        shown_for="latency",
        chart=Chart(
            name="grid",
            draws="charts.grid:figures",
            needs="a case with latency or memory",
            title="Grids of seconds by batch",
            text="Real-time factor (latency where there is no audio) and memory of each case, from dark (low) to "
            "yellow (high).",
        ),
    ),
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
        name="summary",
        summary="One row per case: parameters, latency, real-time factor, FLOPs, memory, energy, tokens, as far as "
        "they were measured.",
        tables="overview:summary",
        takes=("statistic",),
    ),
    View(
        name="growth",
        summary="How each figure grows with seconds and with batch, and from which batch on throughput is saturated.",
        details="See [growth](search.md#growth). `--at seconds=60` adds the figure to expect at that size.",
        tables="growth:growth",
        takes=("at",),
        cases=Cases(lack="has no case at several lengths or batch sizes", options={"seconds": "1,2,4,8"}),
        chart=Chart(
            name="scaling",
            draws="charts.scaling:figures",
            on_paper="charts.scaling:plotted",
            words=True,
            needs="a figure at several seconds or batch sizes",
            title="Latency against size and batch",
            text="How the time of a call grows with its input.",
        ),
    ),
    View(
        name="frontier",
        summary="One row per model and length: the largest batch, seconds or frames that fit, and what did not.",
        details="See [the frontier](search.md#the-frontier).",
        tables="frontier:frontier",
        cases=Cases(lack="searched for no largest size", options={"batch": "1", "find": "max-batch"}),
        chart=Chart(
            name="frontier",
            draws="charts.frontier:figures",
            needs="a search for the largest size, or a grid in which a cell ran out of memory",
            title="Largest that fits",
            text="The largest batch or length that fits into memory. Assumed: what fits also fits at every smaller "
            "value.",
        ),
    ),
    View(
        name="cold-start",
        summary="One row per case: load, first call, steady call.",
        tables="overview:cold_start",
        chart=Chart(
            name="cold-start",
            draws="charts.lists:cold_start",
            needs="the time of loading or of the first call",
            title="Cold start",
            text="Time to load a model, of its first call, and of a call after warm-up.",
        ),
    ),
    View(
        name="parameters",
        summary="One row per model: its parameters.",
        tables="overview:parameters",
        meters=("parameters",),
        shown_for="parameters",
        chart=Chart(
            name="parameters",
            draws="charts.against_latency:figures",
            on_paper="charts.against_latency:figures_on_paper",
            on_page="charts.lists:arithmetic",
            needs="parameters or FLOPs, and latency, of several models or sizes",
            title="Parameters and FLOPs",
            text="Size and arithmetic of each model, and both against latency where it was measured.",
        ),
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
        "`name`, with all these figures. `--limit N` lists N of each case; the others are counted below the table.",
        tables="arithmetic:operators",
        takes=("sort", "limit"),
        meters=("operators",),
    ),
    View(
        name="operators-by-module",
        summary="One row per case, module and operator, the 20 costliest.",
        tables="arithmetic:operators_by_module",
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
        takes=("assumed",),
        meters=("energy",),
        shown_for="energy",
        chart=Chart(
            name="energy",
            draws="charts.lists:energy",
            needs="energy that a sensor read (meter energy)",
            title="Energy",
            text="Energy that sensors read, for an hour of audio or for a call.",
        ),
    ),
    View(
        name="stages",
        summary="One row per case and stage: latency, and memory, weights and FLOPs where they were measured.",
        tables="overview:stages",
        chart=Chart(
            name="stages",
            draws="charts.stages:figures",
            needs="latency by stage",
            title="Stages",
            text="Time of each stage of a call.",
        ),
    ),
    View(
        name="cascades",
        summary="One row per case and model of a cascade: latency, real-time factor, FLOPs, memory, tokens.",
        details="See [cascades](cascades.md).",
        tables="overview:cascades",
    ),
    View(
        name="quality",
        summary="One row per system: scores with intervals, cost, whether it is on the front. Then the difference of "
        "every two systems over the same utterances.",
        details="See [quality](metrics/quality.md).",
        tables="quality:quality",
        meters=("quality",),
        whole=True,
        shown_for="quality",
        chart=Chart(
            name="front",
            draws="charts.front:figures",
            needs="systems with a score (meter quality) and latency",
            title="Accuracy against cost",
            text="Each system by its score and its cost. No other system beats one that is on the front.",
        ),
    ),
    View(
        name="losses",
        summary="Transducer losses, ranked: time, memory and the ratio to the least time that the device allows.",
        details="See [transducer losses](losses.md).",
        tables="losses:losses",
        cases=Cases(lack="measured no transducer loss", options={"set": "losses=[ours, torchaudio]"}),
        shown_for="agreement",
        chart=Chart(
            name="losses",
            draws="charts.lists:losses",
            needs="transducer losses with latency",
            title="Transducer losses",
            text="Time and memory of each loss, and the ratio to the least time that the device allows.",
        ),
    ),
    View(
        name="split",
        summary="One row per case: time by kind of work, idle time of the GPU, latency over its busy time.",
        details="See [phases](profiling.md#phases).",
        tables="profiles:split",
        meters=("split",),
        shown_for="split",
    ),
    View(
        name="modules",
        summary="Where the time of a call goes: in the plan's rows, by label, as a tree of modules and by class.",
        details="`--filter PATTERN` lists the labels and [modules](metrics/modules.md) whose printed name or whole "
        "path fits the pattern. Without the meter `modules`: FLOPs and parameters by module.",
        tables="modules:modules",
        takes=("wanted",),
        meters=("flops",),
        or_meter="modules",
        shown_for="modules",
        chart=Chart(
            name="modules",
            draws="charts.modules:figures",
            needs="the time of modules (meter modules)",
            title="Modules",
            text="Share of each module in a call, in each direction.",
        ),
    ),
    View(
        name="timeline",
        summary="One row per case and module: what was held at the peak of memory.",
        details="See [memory over time](profiling.md#memory-over-time).",
        tables="profiles:timeline",
        meters=("timeline",),
        shown_for="timeline",
        chart=Chart(
            name="memory",
            draws="charts.memory:figures",
            needs="memory through a step (meter timeline)",
            title="Memory over the step",
            text="Memory that is allocated during a step, and what holds it at the peak.",
        ),
    ),
    View(
        name="trace",
        summary="One row per case: the file of its trace, and what was left out of it.",
        details="See [traces](profiling.md#traces).",
        tables="profiles:traces",
        meters=("trace",),
        shown_for="trace",
    ),
    View(
        name="relations",
        summary="How alike models rank by two figures: Spearman's rank correlation with its interval, for each cell.",
        tables="overview:relations",
        cases=Cases(lack="has too few models to rank by two figures", options={"set": "models=[A, B, C, D]"}),
    ),
    View(
        name="utterances",
        summary="Of a dataset with one utterance a call: mean, median, p95 and maximum of latency, RTF, memory and "
        "FLOPs.",
        details="In total and by part. Batched cases are named below the table.",
        tables="utterances:utterances",
        cases=Cases(lack="has no dataset with one utterance a call", options={"data": "LIST", "batch": "1"}),
    ),
    View(
        name="inputs",
        summary="One row per case and figure: noise against real audio, their ratio with its interval, and whether "
        "they differ.",
        details="The interval is over pairs of rounds. See [audio](plans.md#audio).",
        tables="inputs:inputs",
        cases=Cases(lack="measured no case on noise and on real audio", options={"set": "audio=[noise, sample]"}),
    ),
    View(
        name="methods",
        summary="No table: the set-up of the run as a paragraph for a paper, and the BibTeX entry of Speechmeter.",
        details="See [methods](#methods).",
    ),
    View(
        name="machines",
        summary="Cells that several machines measured, with ratios.",
        in_show=False,
        chart=Chart(
            name="machines",
            draws="charts.lists:machines",
            together=True,
            needs="the same cells on two machines: name both runs, or a merged one",
            title="Machines compared",
            text="The same cells on several machines. Their rounds cannot be paired, so the ratios are unpaired.",
        ),
    ),
)
"""In the order in which they are listed, in which the page draws them, and in which first figures are shown."""
BESIDE = View(
    name="beside",
    summary="Real-time factor with busy time beside the wall time: `show --split`.",
    meters=("latency", "split"),
    whole=True,
)
TABLES = {view.name: view for view in VIEWS if view.tables is not None}
CHARTS = {view.chart.name: view.chart for view in VIEWS if view.chart is not None}
"""By the word of `plot --kind`."""


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
        f"| {f'`{view.chart.name}`' if view.chart else ''} |"
        for view in VIEWS
    )


def chart_rows() -> str:
    """The rows of the table of charts in docs/report.md."""
    return "\n".join(f"| `{chart.name}` | {chart.text} | {chart.needs} |" for chart in CHARTS.values())
