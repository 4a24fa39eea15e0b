"""The views of a run, each described once: `show`, `plot`, the page, `--help` and the documentation are made from here.

Every command imports this file, also for `--help`. So it imports no other file of the report; a view names
its functions.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    one_run: bool = False
    """Whether several runs cannot be in one figure: there is a drawing for each model or case."""
    any_metric: bool = False
    """Whether the function takes any metric after the source; otherwise one of its figures is chosen by its metric."""
    axes: tuple[str, ...] = ()
    """What may be behind the name, as in `scaling:batch`: the function for a file takes it after the source."""
    needs_of: Mapping[str, str] = field(default_factory=dict)
    """What a run needs for one of the `axes`, where that is more than `needs`."""

    def function(self, *, page: bool) -> Callable[..., Any]:
        """What draws it: on paper after the source with the axis where there are `axes`, then the metric."""
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
    """Markdown that follows the summary in docs/reference/tables.md: options and links."""
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
            name="models",
            draws="charts.models:figures",
            any_metric=True,
            needs="two models with the same length and batch size, and a value of the metric for each",
            title="Models compared",
            text="All models at one length and batch size: the real-time factor. Without audio, latency.",
        ),
    ),
    View(name="rtfx", summary="Inverse real-time factor, as a grid of seconds by batch."),
    View(
        name="latency",
        summary="Latency of a call, as a grid of seconds by batch.",
        chart=Chart(
            name="grid",
            draws="charts.grid:figures",
            any_metric=True,
            one_run=True,
            needs="a case with latency or memory",
            title="Grids of seconds by batch",
            text="Real-time factor and memory of each case, from dark (low) to yellow (high). Without audio, latency "
            "in place of the real-time factor.",
        ),
    ),
    View(name="throughput", summary="Throughput, as a grid of seconds by batch."),
    View(
        name="memory",
        summary="Memory, as a grid of seconds by batch for each kind of memory that the run measured.",
        details="All cells of a grid have the same unit.",
        shown_for="memory",
    ),
    View(
        name="summary",
        summary="One row per case: parameters, latency, real-time factor, FLOPs, memory, energy and tokens, if they "
        "were measured.",
        tables="overview:summary",
        takes=("statistic",),
    ),
    View(
        name="growth",
        summary="How each metric grows with seconds and with batch size, and at which batch size throughput saturates.",
        details="See [growth](../howto/search.md#growth).",
        tables="growth:growth",
        takes=("at",),
        cases=Cases(lack="has no case at several lengths or batch sizes", options={"seconds": "1,2,4,8"}),
        chart=Chart(
            name="scaling",
            draws="charts.scaling:figures",
            on_paper="charts.scaling:plotted",
            any_metric=True,
            axes=("seconds", "batch"),
            needs="values at several lengths (seconds) or batch sizes",
            title="Latency against size and batch",
            text="How the time of a call grows with its input.",
        ),
    ),
    View(
        name="frontier",
        summary="One row per model and length: the largest batch, seconds or frames that fit into memory, and the "
        "smallest that do not.",
        details="See [the frontier](../howto/search.md#the-frontier).",
        tables="frontier:frontier",
        cases=Cases(lack="has no search for a largest size", options={"batch": "1", "find": "max-batch"}),
        chart=Chart(
            name="frontier",
            draws="charts.frontier:figures",
            needs="a search for the largest size, or a grid in which a cell ran out of memory",
            title="Largest that fits",
            text="The largest batch or length that fits into memory. Assumption: every smaller size also fits.",
        ),
    ),
    View(
        name="streams",
        summary="One row per live system and number of streams: whether it keeps up, and at which number it no longer "
        "does.",
        details="See [several streams](../howto/live.md#several-streams).",
        tables="streams:streams",
        cases=Cases(
            lack="has no live case with a number of streams",
            options={"pace": "realtime", "streams": "1,2,4", "seconds": "64"},
        ),
    ),
    View(
        name="capacity",
        summary="One row per live system and level of load: whether it is within the SLO, throughput and goodput; the "
        "highest level that passes, and the lowest that fails.",
        details="See [capacity](../howto/capacity.md).",
        tables="capacity:capacity",
        takes=("slo", "assumed"),
        cases=Cases(
            lack="has no live case",
            options={"pace": "realtime", "find": "max-streams", "slo": "keep_up=0.01", "seconds": "64"},
        ),
    ),
    View(
        name="lenses",
        summary="One row per system: offline RTFx, delay at one live stream and capacity, with accuracy and memory.",
        details="See [capacity](../howto/capacity.md#the-same-system-offline-live-and-under-load).",
        tables="lenses:lenses",
        takes=("slo",),
        cases=Cases(lack="has no live case", options={"pace": "[realtime, offline]"}),
    ),
    View(
        name="cold-start",
        summary="One row per case: time to load the model, time of the first call, and latency after warm-up.",
        tables="overview:cold_start",
        chart=Chart(
            name="cold-start",
            draws="charts.lists:cold_start",
            needs="the time of loading or of the first call",
            title="Cold start",
            text="Time to load a model, time of its first call, and latency after warm-up.",
        ),
    ),
    View(
        name="parameters",
        summary="One row per model: the number and the bytes of its parameters.",
        tables="overview:parameters",
        meters=("parameters",),
        shown_for="parameters",
        chart=Chart(
            name="parameters",
            draws="charts.against_latency:figures",
            on_paper="charts.against_latency:figures_on_paper",
            on_page="charts.lists:arithmetic",
            needs="parameters or FLOPs, and latency, for several models or sizes",
            title="Parameters and FLOPs",
            text="Parameters and FLOPs of each model, each against latency if it was measured.",
        ),
    ),
    View(
        name="flops",
        summary="One row per case: FLOPs of the forward and of the backward pass, FLOPs per audio second and per "
        "token, element operations and bytes moved.",
        details="The notes below the table explain how they were counted.",
        tables="arithmetic:flops",
        meters=("flops",),
        shown_for="flops",
    ),
    View(
        name="operators",
        summary="One row per case and operator, for the 20 costliest operators and all unsupported ones: time, FLOPs "
        "and element operations.",
        details="To list others, use `--sort` and `--limit`.",
        tables="arithmetic:operators",
        takes=("sort", "limit"),
        meters=("operators",),
    ),
    View(
        name="operators-by-module",
        summary="One row per case, module and operator, for the 20 costliest.",
        tables="arithmetic:operators_by_module",
        meters=("operators",),
    ),
    View(
        name="coverage",
        summary="One row per case: time in all operators, and the share of each kind of operator in it.",
        details="See [kinds of operators](metrics/flops.md#kinds-of-operators-and-coverage).",
        tables="arithmetic:coverage",
        meters=("operators",),
        shown_for="operators",
    ),
    View(
        name="utilisation",
        summary="One row per case and stage: share of the device's measured peak arithmetic and peak bandwidth.",
        tables="arithmetic:utilisation",
        meters=("latency", "flops", "peaks"),
        shown_for="peaks",
    ),
    View(
        name="energy",
        summary="Energy and power. One table each for GPU, processor and system, if the plan requests them.",
        tables="energy:energy",
        takes=("assumed",),
        meters=("energy",),
        shown_for="energy",
        chart=Chart(
            name="energy",
            draws="charts.lists:energy",
            needs="energy measured by a sensor (meter energy)",
            title="Energy",
            text="Measured energy for an hour of audio or for a call.",
        ),
    ),
    View(
        name="stages",
        summary="One row per case and stage: latency, and memory, weights and FLOPs if they were measured.",
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
        summary="One row per case and model of a cascade: latency, real-time factor, FLOPs, memory and tokens.",
        details="See [cascades](../howto/cascades.md).",
        tables="overview:cascades",
    ),
    View(
        name="quality",
        summary="One row per system: scores with intervals, cost, and whether it is on the Pareto front. A second "
        "table compares every two systems over the same utterances.",
        details="See [quality](metrics/quality.md).",
        tables="quality:quality",
        meters=("quality",),
        whole=True,
        shown_for="quality",
        chart=Chart(
            name="front",
            draws="charts.front:figures",
            needs="a score (meter quality) and latency for each system, or live cases with references",
            title="Accuracy against cost",
            text=(
                "The score of each system against its cost. A system on the Pareto front is beaten by no "
                "other system in both score and cost."
            ),
        ),
    ),
    View(
        name="live",
        summary="One row per model, chunk and number of streams of a live run: delays in one table; completeness, "
        "changes of partial texts and WER in a second.",
        details="See [live systems](../howto/live.md).",
        tables="live:live",
        cases=Cases(lack="has no live case", options={"pace": "realtime"}),
        chart=Chart(
            name="live",
            draws="charts.live:figures",
            on_paper="charts.live:plotted",
            axes=("delays", "distribution", "churn", "backlog", "timeline", "capacity"),
            needs="a case that was measured live (`pace: realtime`)",
            needs_of={
                "distribution": "several utterances that were measured live, with final texts",
                "churn": "a live case with the times of words and partial texts",
                "backlog": "a live case at `pace: realtime` with the times of words, and its exchange files",
                "timeline": "live cases with one utterance in common, and their exchange files",
                "capacity": "an `slo` in the plan, and live cases with at least two numbers of streams",
            },
            title="Live",
            text="What a speaker feels: how late text comes, how often it changes, and how far it falls behind.",
        ),
    ),
    View(
        name="speech",
        summary="One row per live system that speaks: first byte and first sound, cold and warm; underruns; the "
        "sound itself and what a recogniser heard in it; for systems that answer speech, the parts of voice "
        "to voice.",
        details="See [speech out](../howto/speech-out.md).",
        tables="speech:speech",
        cases=Cases(
            lack="has no live case of a system that speaks", options={"pace": "fast", "set": "text.lines=FILE"}
        ),
        chart=Chart(
            name="speech",
            draws="charts.speech:figures",
            on_paper="charts.speech:plotted",
            axes=("start", "distribution", "answer", "underrun"),
            needs="a live case of a system that speaks",
            title="Speech out",
            text="What a listener feels: how soon sound comes, and whether it stutters.",
        ),
    ),
    View(
        name="losses",
        summary=(
            "Transducer losses ranked by latency: latency, memory, and how many times longer the loss "
            "takes than the shortest possible time on the device."
        ),
        details="See [transducer losses](../explanation/losses.md).",
        tables="losses:losses",
        cases=Cases(lack="measured no transducer loss", options={"set": "losses=[ours, torchaudio]"}),
        shown_for="agreement",
        chart=Chart(
            name="losses",
            draws="charts.lists:losses",
            needs="transducer losses with latency",
            title="Transducer losses",
            text=(
                "Latency and memory of each loss, and how many times longer it takes than the shortest "
                "possible time on the device."
            ),
        ),
    ),
    View(
        name="split",
        summary="One row per case: how a call divides its time between GPU kernels, copies, the CUDA runtime, the CPU "
        "and idle time, the share of time in which the GPU is idle, and the ratio of latency to GPU busy time.",
        details="See [phases](../howto/profiling.md#phases).",
        tables="profiles:split",
        meters=("split",),
        shown_for="split",
    ),
    View(
        name="modules",
        summary="Which parts of a model take the time of a call. One table each for the rows that the plan defines, "
        "for labels in the code, for the tree of modules and for module classes.",
        details="See [modules](metrics/modules.md). Without the meter `modules`: FLOPs and parameters by module.",
        tables="modules:modules",
        takes=("wanted",),
        meters=("flops",),
        or_meter="modules",
        shown_for="modules",
        chart=Chart(
            name="modules",
            draws="charts.modules:figures",
            one_run=True,
            needs="the time of each module (meter modules)",
            title="Modules",
            text="Share of each module in the time of a call, in the forward and in the backward pass.",
        ),
    ),
    View(
        name="timeline",
        summary="One row per case and module: memory that the module held when the call reached its memory peak.",
        details="See [memory over time](../howto/profiling.md#memory-over-time).",
        tables="profiles:timeline",
        meters=("timeline",),
        shown_for="timeline",
        chart=Chart(
            name="memory",
            draws="charts.memory:figures",
            one_run=True,
            needs="memory over a step (meter timeline)",
            title="Memory over the step",
            text="Allocated memory during a step, and which modules hold it at the peak.",
        ),
    ),
    View(
        name="trace",
        summary="One row per case: its trace file, and how many events were left out of it.",
        details="See [traces](../howto/profiling.md#traces).",
        tables="profiles:traces",
        meters=("trace",),
        shown_for="trace",
    ),
    View(
        name="tune",
        summary="The answer of `tune`: the chosen configuration and its gain, what each change adds, and what became "
        "of each candidate.",
        details="See [tune](../howto/tune.md).",
        tables="tuning:tuning_tables",
        takes=("tuning",),
        cases=Cases(lack="was not made by `speechmeter tune`", options={"set": "tune.goal=rtfx"}),
    ),
    View(
        name="relations",
        summary="Whether two metrics rank the models in the same order: Spearman's rank correlation with its interval, "
        "for each input size and batch.",
        tables="overview:relations",
        cases=Cases(lack="has too few models for a rank correlation", options={"set": "models=[A, B, C, D]"}),
    ),
    View(
        name="utterances",
        summary="Mean, median, p95 and maximum over the utterances of a dataset: latency, RTF, memory and FLOPs. This "
        "needs one utterance per call.",
        details="For the whole dataset and for each part of it. A note below the table names the batched cases.",
        tables="utterances:utterances",
        cases=Cases(lack="has no dataset with one utterance per call", options={"data": "LIST", "batch": "1"}),
    ),
    View(
        name="inputs",
        summary=(
            "One row per case and metric: the value on noise and on real audio, their ratio with its "
            "interval, and whether they differ."
        ),
        details="The interval compares rounds in pairs: a round on noise with the round on real audio that was "
        "measured next to it. See [audio](plans.md#audio).",
        tables="inputs:inputs",
        cases=Cases(lack="measured no case on noise and on real audio", options={"set": "audio=[noise, sample]"}),
    ),
    View(
        name="methods",
        summary="Not a table: the set-up of the run as a paragraph for a paper, and the BibTeX entry of Speechmeter.",
        details="See [methods](#methods).",
    ),
    View(
        name="imported",
        summary="Figures that other tools measured, side by side, one table per question, each with the definition of "
        "its tool.",
        details="See [results of other tools](../howto/results.md).",
        tables="imported:imported",
    ),
    View(
        name="machines",
        summary="Cases that were measured on several machines, with ratios between the machines.",
        in_show=False,
        chart=Chart(
            name="machines",
            draws="charts.lists:machines",
            together=True,
            needs="the same cases on two machines: give both runs, or one merged run",
            title="Machines compared",
            text="The same cases on several machines. Their rounds cannot be paired, so the ratios are unpaired.",
        ),
    ),
)
"""In the order in which they are listed, in which the page draws them, and in which first figures are shown."""
BESIDE = View(
    name="beside",
    summary="Real-time factor from wall time, CPU busy time and GPU busy time, side by side: `show --split`.",
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
    return "\n".join(["\b", "Values of --metric:", *listed])  # after \b lines are kept as they are


def markdown_list() -> str:
    """A line for each view, for docs/reference/tables.md. A table has a row per case unless its line says otherwise."""
    lines = []
    for view in VIEWS:
        text = f"{view.summary} {view.details}".rstrip().removeprefix("One row per case: ")
        link = re.search(r" See \[[^]]+\]\(([^)]+)\)\.", text)
        text = text.replace(link[0], "") if link else text
        linked = f"[`{view.name}`]({link[1]})" if link else f"`{view.name}`"
        name = f"{linked}: " if view.in_show else ""
        chart = f" **`--kind {view.chart.name}`**" if view.chart else ""
        lines.append(f"- {name}{text[0].upper()}{text[1:]}{chart}")
    return "\n".join(lines)
