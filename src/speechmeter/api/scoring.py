"""Score files of utterances, ours or of another tool, with the figures, intervals and pairs that a run has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from speechmeter.core import metrics, plugins
from speechmeter.core.axes import Axes
from speechmeter.core.errors import InputError, StoreError
from speechmeter.core.protocol import protocol_from_json
from speechmeter.core.quality import NORMALISERS, VERSIONS, normaliser_id
from speechmeter.core.types import Case, Measurement, Record, Spec, by_turns
from speechmeter.core.utterances import UTTERANCES_FILE, Utterance, read_utterances
from speechmeter.meters.quality import Answer, missing
from speechmeter.meters.quality import score as score_answers
from speechmeter.report.labels import case_labels
from speechmeter.report.quality import file_tables
from speechmeter.report.tables import Table
from speechmeter.store.run_dir import RunDir, is_run

_SCORES = ("wer", "cer")


@dataclass(frozen=True, kw_only=True)
class ScoredFiles:
    """A record for each file, by its name, and the lines that could not be used."""

    records: dict[str, Record]
    bad_lines: tuple[str, ...]

    def tables(self) -> list[Table]:
        """Scores of each file; differences of every two."""
        return file_tables({name: [record] for name, record in self.records.items()})


def score_files(paths: Sequence[Path], normaliser: str = "basic") -> ScoredFiles:
    """Read and score. Raises InputError for a file without a usable line, an unknown normaliser, a missing package."""
    if normaliser not in (*NORMALISERS, *VERSIONS):
        raise InputError(
            f"unknown normaliser {normaliser!r}", key="normaliser", fix=plugins.nearest(normaliser, list(NORMALISERS))
        )
    lacking = missing(_SCORES)
    if lacking is not None:
        raise InputError(lacking)
    repeated = next((path for index, path in enumerate(paths) if path in paths[:index]), None)
    if repeated is not None:
        raise InputError("this file is given twice", where=str(repeated), fix="name each file once")
    names = [system_name(path) for path in paths]
    read = {
        name if names.count(name) == 1 else str(path): read_utterances(path)
        for name, path in zip(names, paths, strict=True)
    }
    return ScoredFiles(
        records={name: _record(name, file.utterances, normaliser_id(normaliser)) for name, file in read.items()},
        bad_lines=tuple(line for file in read.values() for line in file.bad_lines),
    )


def system_name(path: Path) -> str:
    """What a file is called in tables: its run and case if it is an artifact of a run, else its path."""
    folder = path.absolute().parent
    run, case_id = folder.parent.parent, folder.name
    if path.name != UTTERANCES_FILE or not is_run(run):
        return str(path)
    try:
        labels = case_labels(RunDir(run).records())
    except StoreError:  # broken records are no reason not to score
        return str(path)
    return f"{run.name}: {labels[case_id]}" if case_id in labels else str(path)


def _record(name: str, utterances: Sequence[Utterance], normaliser_id: str) -> Record:
    answers = [Answer(name=one.name, reference=one.reference, output=one.output) for one in utterances]
    case = Case(
        subject=Spec(plugin="file", name=name, source=name),
        workload=Spec(plugin="file", name="utterances"),
        axes=Axes(),
        meters=("latency", "quality"),
        protocol=protocol_from_json({}),
    )
    measurements = (*_seconds(utterances), *score_answers(answers, _SCORES, normaliser_id))
    return Record(case=case, round=0, sequence=0, status="ok", measurements=measurements)


def _seconds(utterances: Sequence[Utterance]) -> list[Measurement]:
    """Times and durations, each only if every utterance has one: a sum over some of them would mislead."""
    times = [one.time_s for one in utterances if one.time_s is not None]
    durations = [one.duration_s for one in utterances if one.duration_s is not None]
    found = []
    for metric, name, values in ((metrics.LATENCY, "time", times), (metrics.AUDIO_SECONDS, "duration", durations)):
        lacking = len(utterances) - len(values)
        if lacking:
            found.append(Measurement.absent(metric, f"{lacking} of {len(utterances)} utterances have no {name}"))
        else:
            found.append(Measurement.of(metric, values, notes=by_turns(values) if metric is metrics.LATENCY else None))
    return found
