"""The Open ASR Leaderboard: its result manifests read and written, and its table with intervals, latency and memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from speechmeter.core import metrics, plugins
from speechmeter.core.axes import Axes
from speechmeter.core.errors import InputError
from speechmeter.core.files import check_free, written_by_user
from speechmeter.core.normalise import normaliser as our_normaliser
from speechmeter.core.protocol import OtherProtocol
from speechmeter.core.quality import NORMALISERS, UTTERANCES, VERSIONS, normaliser_id
from speechmeter.core.types import Case, Measurement, Record, Spec, by_turns
from speechmeter.core.utterances import UTTERANCES_FILE, Utterance, read_manifest, write_utterances
from speechmeter.meters import open_asr
from speechmeter.report.leaderboard import Disagreement, difference_table, leaderboard_table
from speechmeter.report.tables import Table
from speechmeter.store.artifacts import artifacts_of
from speechmeter.store.run_dir import RunDir, is_run

PROFILE = "open-asr"
_NAME = re.compile(r"MODEL_(?P<model>.+?)_DATASET_(?P<dataset>.+)\.jsonl(?:\.gz)?")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The results of a model on a dataset: a record with counts and times, and those of the run where there is one."""

    model: str
    dataset: str
    record: Record
    measured: tuple[Record, ...] = ()
    texts: tuple[Utterance, ...] = field(repr=False, default=())


def score_manifests(paths: Sequence[Path], *, normaliser: str = "english", differences: int = 0) -> list[Table]:
    """The leaderboard's table of result manifests and runs; with `differences` so many utterances of each.

    `normaliser` is ours, which those utterances are compared with. Raises InputError for what cannot be read, and where
    the packages or word lists are missing.
    """
    if normaliser not in (*NORMALISERS, *VERSIONS):
        fix = plugins.nearest(normaliser, list(NORMALISERS))
        raise InputError(f"unknown normaliser {normaliser!r}", key="normaliser", fix=fix)
    why = open_asr.lacking()
    if why is not None:
        raise InputError(why)
    theirs, theirs_id = open_asr.normaliser_of(os.environ[open_asr.VARIABLE])
    found = [_scored(one) for path in paths for one in _read(path)]
    pairs = [(one.model, one.dataset) for one in found]
    repeated = next((pair for index, pair in enumerate(pairs) if pair in pairs[:index]), None)
    if repeated is not None:
        raise InputError(f"{repeated[0]} on {repeated[1]} is given twice", fix="name each manifest once")
    systems = {pair: (one.record, one.measured) for pair, one in zip(pairs, found, strict=True)}
    tables = [leaderboard_table(systems, theirs_id)]
    if differences:
        ours_id = normaliser_id(normaliser)
        ours = our_normaliser(ours_id)
        rows = [row for one in found for row in _disagreements(one, ours, theirs, differences)]
        tables.append(difference_table(rows, ours_id, theirs_id))
    return tables


def write_manifests(run: Path, output: Path, dataset: str, *, force: bool = False) -> list[Path]:
    """A result manifest for each model of a run whose calls held one utterance each; returns their paths.

    Raises InputError where there is no such case, for several cases of one model, and for a file that exists.
    """
    cases = list(_cases(run))
    names = [case.subject.name for case, _, _ in cases]
    repeated = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if repeated is not None:
        fix = "a manifest is named after its model: measure one case of each"
        raise InputError(f"{run} has several cases of {repeated}", where=str(run), fix=fix)
    paths = [output / f"MODEL_{_part(name)}_DATASET_{_part(dataset)}.jsonl" for name in names]
    for path in paths:
        check_free(path, force=force, makes_folder=True)
    for path, (_, utterances, _) in zip(paths, cases, strict=True):
        with written_by_user(path):
            write_utterances(path, utterances)
    return paths


def _part(name: str) -> str:
    """A name in the name of a file, as the leaderboard writes it."""
    return name.replace("/", "-").replace("\\", "-").replace("\x00", "")


def _cases(run: Path) -> Iterator[tuple[Case, tuple[Utterance, ...], tuple[Record, ...]]]:
    """The cases of a run whose utterances were written, with these and their records."""
    store = RunDir.existing(run)
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in store.records():
        groups.setdefault((record.case.id, record.host), []).append(record)
    found = False
    for records in groups.values():
        path = artifacts_of(store.artifacts_path, records[0]) / UTTERANCES_FILE
        if path.is_file():
            found = True
            yield records[0].case, read_manifest(path), tuple(records)
    if not found:
        raise InputError(
            "this run has no times of single utterances",
            where=str(run), fix="measure a list with texts, one utterance a call: `batch: 1`",
        )  # fmt: skip


def _read(path: Path) -> Iterator[tuple[str, str, tuple[Utterance, ...], tuple[Record, ...]]]:
    """(model, dataset, utterances, records) of a manifest, or of each such case of a run."""
    if is_run(path):
        for case, utterances, records in _cases(path):
            yield case.subject.name, case.workload.name, utterances, records
        return
    match = _NAME.fullmatch(path.name)
    model, dataset = (match["model"], match["dataset"]) if match else (path.name, "all")
    yield model, dataset, read_manifest(path), ()


def _scored(read: tuple[str, str, tuple[Utterance, ...], tuple[Record, ...]]) -> Scored:
    model, dataset, utterances, records = read
    names = [f"{index} {one.name}" for index, one in enumerate(utterances)]  # names of a manifest may repeat
    answered = [float(bool(one.output.strip())) for one in utterances]
    measurements = [
        Measurement.of(metrics.ANSWERED, answered, notes={UTTERANCES: names}),
        *open_asr.measured([(one.reference, one.output) for one in utterances]),
        *_times(utterances),
    ]
    record = Record(case=_case(model, dataset), round=0, sequence=0, status="ok", measurements=tuple(measurements))
    return Scored(model=model, dataset=dataset, record=record, measured=records, texts=utterances)


def _case(model: str, dataset: str) -> Case:
    return Case(
        subject=Spec(plugin="file", name=model),
        workload=Spec(plugin="file", name=dataset),
        axes=Axes(),
        meters=("latency", "quality"),
        protocol=OtherProtocol(),
    )


def _times(utterances: Sequence[Utterance]) -> list[Measurement]:
    """Seconds of computing and of audio, where every line has both: the leaderboard sums no part of a file."""
    times, audio = ([getattr(one, key) for one in utterances] for key in ("time_s", "duration_s"))
    if None in times or None in audio:
        return []
    return [
        Measurement.of(metrics.LATENCY, times, notes=by_turns(times)),
        Measurement.of(metrics.AUDIO_SECONDS, audio),
    ]


def _disagreements(
    one: Scored, ours: Callable[[str], str], theirs: Callable[[str], str], most: int
) -> list[Disagreement]:
    """The utterances whose errors differ most between the two normalisers, both scored in the same way."""
    found = []
    for utterance in one.texts:
        sides = [(rule(utterance.reference), rule(utterance.output)) for rule in (ours, theirs)]
        own, other = (open_asr.errors(*side)[0] for side in sides)
        if own != other:
            found.append(Disagreement(one.model, utterance.name, own, other, sides[0], sides[1]))
    return sorted(found, key=lambda row: -abs(row.ours - row.theirs))[:most]
