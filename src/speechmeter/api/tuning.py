"""Tune a model: the configuration that is best for a goal and still does the job, with what that rests on."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechmeter.analysis.tuned import state_of
from speechmeter.analysis.tuning_answer import Answer, answer_of
from speechmeter.analysis.tuning_margin import provable
from speechmeter.api.displayed import Displayed
from speechmeter.api.loaded import Run
from speechmeter.api.progress import shown_progress
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Launcher, Options, study_of
from speechmeter.core import plugins
from speechmeter.core.axes import CORE_AXES, axis_names
from speechmeter.core.batches import gathered
from speechmeter.core.errors import EXIT_CANNOT_TELL, EXIT_FAILED, InputError, for_python
from speechmeter.core.tuning import TUNED_AXES, tuning_of
from speechmeter.core.types import Case, Record
from speechmeter.launch.recorder import Watcher
from speechmeter.plan.build import axes_of
from speechmeter.plan.study import Study
from speechmeter.report.sources import asked_tuning
from speechmeter.report.tables import Table
from speechmeter.report.tuning import answer_data, answer_json, answer_tables, headline
from speechmeter.store.run_dir import CHOSEN_FILE, RunDir

Texts = str | Sequence[str]


@dataclass(frozen=True, kw_only=True, repr=False)
class Tuned(Displayed):
    """What `tune` found: the answer, the run with all trials, and the plan of the configuration to use."""

    run: Run
    answer: Answer
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Tuned({self.words!r})"

    @property
    def words(self) -> str:
        """The answer in one line."""
        return headline(self.answer)[0]

    @property
    def plan(self) -> Path:
        """The plan file of the configuration to use."""
        return self.run.path / CHOSEN_FILE

    @property
    def command(self) -> str:
        """The command that measures the configuration to use."""
        return f"speechmeter run {shlex.quote(str(self.plan))}"

    @property
    def exit_code(self) -> int:
        """0 with an answer, 1 where the default failed, 3 where it cannot be told whether another is better."""
        return {"failed": EXIT_FAILED, "cannot tell": EXIT_CANNOT_TELL, "unfinished": EXIT_CANNOT_TELL}.get(
            self.answer.outcome, 0
        )

    def tables(self, metric: str | None = None) -> list[Table]:
        """The answer, what each change adds, and what became of the candidates; of a metric those of the run."""
        return answer_tables(self.answer) if metric is None else self.run.tables(metric)

    def data(self) -> dict[str, Any]:
        """Everything as plain data."""
        return answer_data(self.answer, str(self.plan), self.command, self.notes)

    def json(self) -> str:
        """Everything as JSON."""
        return answer_json(self.answer, str(self.plan), self.command, self.notes)

    def _title(self) -> str:
        return self.words

    def _shown_records(self) -> Sequence[Record]:
        return self.run.records


@for_python
def tune(
    model: str | Mapping[str, Any] | None = None,
    data: str | Mapping[str, Any] | None = None,
    *,
    goal: str = "rtfx",
    keep: Texts = (),
    over: Texts | None = None,
    within: str | float | None = None,
    min_effect: str | float = 0.05,
    price: float | None = None,
    output: str | Path | None = None,
    launcher: Launcher = "subprocess",
    resume: bool = False,
    force: bool = False,
    trust: bool = False,
    offline: bool = False,
    progress: bool | None = None,
    **keys: Any,
) -> Tuned:
    """Find the configuration of a model that is best for a goal and still does the job.

    `goal` is `rtfx`, `latency`, `memory`, `energy` or `cost` (which needs a `price` of an hour of the machine). `keep`
    are bounds such as `wer<=+0.3` (percentage points against the default), `memory<=4GiB`, `latency_p95<=200ms`;
    `over` are axes, `within` is a time such as `20min`. Other keys are those of a plan: `threads=[2, 1]` gives an axis
    its values, the default first. With `resume` and without a model, the tuning in `output` is continued.
    """
    asked = {"goal": goal, "keep": _listed(keep), "min_effect": min_effect, "within": within, "price": price}
    asked |= {} if over is None else {"over": _listed(over)}
    if model is None and not (resume and output is not None):
        raise InputError("no model is given", key="model", fix="name one, or give `resume` and `output`")
    given: dict[str, Any] = {} if model is None else {"models": [model], "tune": asked, **keys}
    if data is not None:
        given["data"] = {"manifest": data} if isinstance(data, str) else data
    resumed = Path(output) if model is None and output is not None else None
    study = tuning_study(None, keys=given, resumed=resumed, trust=trust)
    options = Options(
        output=Path(output) if output else None, launcher=launcher, resume=resume, force=force, offline=offline
    )
    with shown_progress(progress) as watch:
        return run_tuned(study, options, watch)


def _listed(texts: Texts) -> list[str]:
    found = texts.split(",") if isinstance(texts, str) else list(texts)
    return [text.strip() for text in found if text.strip()]


def tuning_study(
    plan: Path | None,
    *,
    models: Sequence[str] = (),
    axes: Mapping[str, str | None] | None = None,
    keys: Mapping[str, Any],
    sets: Sequence[str] = (),
    resumed: Path | None = None,
    trust: bool = False,
) -> Study:
    """The study that options describe (see `starting.study_of`). Raises InputError where nothing is to be tuned."""
    study = study_of(plan, models=models, axes=axes or {}, keys=keys, sets=sets, resumed=resumed, trust=trust)
    if study.plan.tune is None:
        raise InputError(
            "this run was not made by `tune`" if resumed is not None else "the plan has no key `tune`",
            where=str(resumed or plan or ""), key="tune", fix="add it: `tune: {goal: rtfx}`",
        )  # fmt: skip
    return study


def run_tuned(
    study: Study,
    options: Options,
    watch: Watcher = lambda event: None,
    say: Callable[[str], None] = lambda line: None,
) -> Tuned:
    """Tune as the study says, and write the plan of the configuration to use. `say` gets what is known beforehand."""
    notes = tuple(before(study))
    for line in notes:
        say(line)
    made = run_study(study, options, watch)
    return tuned(made, notes)


def tuned(made: Run, notes: Sequence[str] = ()) -> Tuned:
    """The answer of a run that was tuned. Raises InputError for another run."""
    tuning = asked_tuning(RunDir(made.path))
    if tuning is None:
        raise InputError("this run was not made by `tune`", where=str(made.path), fix="choose another run")
    return Tuned(run=made, answer=answer_of(state_of(made.records, tuning)), notes=tuple(notes))


def before(study: Study) -> Iterator[str]:
    """What should be known before anything is measured: how many candidates there are, and what the data can prove."""
    tuning = tuning_of(study.plan.to_plain())
    if tuning is None:
        return
    axes = "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in tuning.axes.items())
    count = len(study.cells.cases)
    yield f"{count} configurations: {axes} (the default first)"
    asked = study.source.data.get("tune")
    named = asked.get("over") if isinstance(asked, Mapping) else None
    (model,) = study.plan.models
    declared = axis_names((*CORE_AXES, *plugins.workload(study.plan.workload.name).axes, *axes_of(model)))
    absent = [name for name in TUNED_AXES if name not in declared and (named is None or name in named)]
    if absent:
        yield f"not tuned, because this model has no such axis: {', '.join(absent)}"
    if tuning.scores:
        words = reference_words(study.cells.cases[0])
        for keep in tuning.scores:
            yield f"{keep.text}: {provable(words, keep.limit)}"


def reference_words(case: Case) -> list[int]:
    """How many words the reference of each utterance has. Raises InputError for data without references."""
    workload = plugins.workload(case.workload.plugin)
    batches = gathered(lambda: workload.batches(case))
    words = [len(reference.split()) for batch in batches.outlines() for reference in batch.references]
    if not sum(words):
        raise InputError(
            "a bound on a score needs reference texts, and the data have none",
            key="keep", fix="use data with references, or leave the bound out",
        )  # fmt: skip
    return words
