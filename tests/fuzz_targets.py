"""What is fuzzed: for each kind of input its sound files, how they are damaged, and everything that reads them."""

from __future__ import annotations

import io
import json
import pickle
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import foreign_results
import numpy as np
import soundfile
import speech_sets
import yaml
from conftest import make_case
from fuzzing import HOSTILE, bent, changed, damaged, json_line
from rich.console import Console

from speechmeter.api.comparing import compare
from speechmeter.api.comparing import select as select_run
from speechmeter.api.importing import import_results
from speechmeter.api.querying import query
from speechmeter.core.hosts import hosts_apart
from speechmeter.core.types import Spec
from speechmeter.core.utterances import read_manifest
from speechmeter.integrations.trackers.exporting import export_run
from speechmeter.launch.preflight import preflight
from speechmeter.plan.study import study_from_file
from speechmeter.report.choose import tables
from speechmeter.report.lines import summary
from speechmeter.report.page.build import build_page
from speechmeter.report.sources import read_sources
from speechmeter.report.terminal import draw as draw_tables
from speechmeter.report.text import FORMATS
from speechmeter.store.merge import merge
from speechmeter.store.run_dir import RunDir
from speechmeter.workloads.audio import AudioWorkload
from speechmeter.workloads.manifests import formats
from speechmeter.workloads.selection import Choice, select
from speechmeter.workloads.shapes import file as shapes

ROOT = Path(__file__).parents[1]
Target = Callable[[Path, random.Random], None]
MOST_CASES = 300
"""A plan of more cases is not gone through."""
RATE = 16_000


# Plans


@cache
def sound_plans() -> list[bytes]:
    files = [*sorted((ROOT / "plans").glob("*.yaml")), ROOT / "src/speechmeter/plan/tour.yaml"]
    return [path.read_bytes() for path in files]


def plan(folder: Path, draw: random.Random) -> None:
    raw = draw.choice(sound_plans())
    path = folder / "plan.yaml"
    if draw.random() < 0.5:
        path.write_bytes(damaged(raw, draw))
    else:
        path.write_text(yaml.safe_dump(changed(yaml.safe_load(raw), draw), allow_unicode=True), errors="replace")
    study = study_from_file(path, trust=False)
    study.plan_text()
    if len(study.cells.cases) <= MOST_CASES:
        preflight(study.cells.cases, study.plan.limits.value(), origin=study.origin)


# Records


@cache
def sound_records() -> list[list[Any]]:
    """A few records of each example, the smallest, and of each a few measurements: damage then hits what matters."""
    found = []
    for path in sorted((ROOT / "examples/runs").glob("*/records.jsonl")):
        small = [json.loads(line) for line in sorted(path.read_bytes().splitlines(), key=len)[:12]]
        found.append([{**one, "measurements": _thinned(one["measurements"])} for one in small])
    return found


def _thinned(measurements: list[Any], most: int = 40) -> list[Any]:
    return measurements[:: max(1, len(measurements) // most)]


def _lines(draw: random.Random) -> list[bytes]:
    records = draw.sample(few := draw.choice(sound_records()), k=draw.randint(1, min(6, len(few))))
    lines = [json_line(record) for record in records]
    for _ in range(draw.randint(1, 2)):
        place, kind = draw.randrange(len(lines)), draw.random()
        if kind < 0.25:
            lines[place] = damaged(lines[place], draw)
        elif kind < 0.5:
            lines[place] = json_line(changed(records[place % len(records)], draw))
        elif kind < 0.8:
            lines[place] = json_line(bent(records[place % len(records)], draw))
        elif kind < 0.85:
            lines[place] = json_line({**records[place % len(records)], "schema": draw.choice(HOSTILE)})
        elif kind < 0.9:
            lines.append(lines[place])
        else:
            draw.shuffle(lines)
    if draw.random() < 0.2:
        lines[-1] = lines[-1][: draw.randrange(len(lines[-1]))]
    return lines


def _run(folder: Path, lines: Sequence[bytes], draw: random.Random) -> Path:
    run = folder / f"run{draw.randrange(10**9)}"
    run.mkdir()
    (run / "records.jsonl").write_bytes(b"".join(lines))
    environment = {"fingerprint": "0123456789ab", "facts": {"cpu": "x", "cores": [0]}, "state": {}}
    wrong = draw.random() < 0.2
    (run / "environments.jsonl").write_bytes(json_line(changed(environment, draw) if wrong else environment))
    if draw.random() < 0.1:
        (run / "plan.yaml").write_text("models: !!python/object/apply:os.mkdir ['pwned']\n")
    return run


def records(folder: Path, draw: random.Random) -> None:
    """A stranger's run: shown in every format, now and then merged, queried, compared and made a page of."""
    run = _run(folder, _lines(draw), draw)
    found = hosts_apart(RunDir.existing(run).records())
    made = tables(found, None)
    summary(found)
    draw_tables(made, Console(file=io.StringIO(), width=160))
    for form in FORMATS.values():
        form(made)
    how = draw.random()
    if how < 0.2:
        RunDir.existing(run).environments()
        merge([run, ROOT / "examples/runs/accuracy-vs-cost"], folder / f"merged{run.name}")
    elif how < 0.25:
        query([run], "SELECT count(*) FROM measurements")
        query([run], "SELECT * FROM estimates")
    elif how < 0.3:
        query([run], "SELECT * FROM environments")
    elif how < 0.35:
        build_page(read_sources([str(run)]), "0")
    elif how < 0.45:
        compare(select_run(str(run)), select_run(str(run)), {"latency": 0.05})
    elif how < 0.6:
        for word in draw.sample(("latency", "cold-start", "stages", "summary", "relations", "utterances", "modules",
                                 "energy", "trace", "timeline", "split", "losses"), k=3):  # fmt: skip
            tables(found, word)


# Sound


@cache
def sound_sounds() -> list[tuple[str, bytes]]:
    wave = (np.sin(np.arange(4000) / 20) / 4).astype(np.float32)
    kinds = [("wav", "WAV", "PCM_16", 1), ("wav", "WAV", "FLOAT", 2), ("flac", "FLAC", "PCM_16", 1),
             ("ogg", "OGG", "VORBIS", 1), ("mp3", "MP3", "MPEG_LAYER_III", 1), ("wav", "WAV", "MS_ADPCM", 1),
             ("aiff", "AIFF", "PCM_24", 1), ("au", "AU", "ULAW", 1)]  # fmt: skip
    made = []
    for suffix, form, subtype, channels in kinds:
        buffer = io.BytesIO()
        soundfile.write(buffer, np.stack([wave] * channels, axis=1), RATE, format=form, subtype=subtype)
        made.append((suffix, buffer.getvalue()))
    return made


def sound(folder: Path, draw: random.Random) -> None:
    """A damaged file as `audio:`, and as the only item of a list."""
    suffix, raw = draw.choice(sound_sounds())
    path = folder / f"sound.{suffix}"
    path.write_bytes(damaged(raw[:60], draw) + raw[60:] if draw.random() < 0.5 else damaged(raw, draw))
    if draw.random() < 0.5:
        (folder / "list.jsonl").write_text(json.dumps({"audio_filepath": path.name}) + "\n")
        select(Choice(manifest=folder / "list.jsonl"))
        return
    case = make_case(workload=Spec(plugin="audio", name=path.name, source=str(path)))
    AudioWorkload().check(case)
    for batch in AudioWorkload().batches(case):
        assert np.isfinite(batch.data).all()


# Lists


@cache
def sound_lists() -> list[tuple[str, str, bytes]]:
    """(format, name of the file, content)."""
    cut = {
        "id": "c", "start": 0, "duration": 1.0, "channel": 0, "supervisions": [{"start": 0, "text": "x"}],
        "recording": {"sources": [{"type": "file", "channels": [0], "source": "a.wav"}], "duration": 2.0},
    }  # fmt: skip
    nested = {"a": {"wav": {"file": "a.wav", "start": 1, "stop": 9}, "words": "x"}, "b": {"wav": "b"}}
    nemo = {"audio_filepath": "a.wav", "duration": 1.5, "offset": 0.5, "text": "x"}
    return [
        ("fairseq", "set.tsv", b"/data\na.flac\t1600\nb/c.flac\t320\n"),
        ("nemo", "nemo.json", json_line(nemo) + json_line({"audio_filepath": "b.wav"})),
        ("wenet", "data.list", json_line({"key": "a", "wav": "a.wav", "txt": "x", "start": 0.5, "end": 1})),
        ("lhotse", "cuts.jsonl", json_line(cut)),
        (
            "lhotse",
            "cuts.json",
            b"[" + json_line(cut) + b"," + json_line({**cut, "features": {"num_frames": 9}}) + b"]",
        ),
        ("speechbrain-csv", "set.csv", b'ID,duration,wav,start,stop,wrd\na,1.0,"a.wav",0,100,x\nb,,b.wav,,,y\n'),
        ("speechbrain-json", "set.json", json_line(nested)),
        ("audiofolder", "metadata.csv", b'file_name,transcription\na.wav,"x, y"\nb.wav,z\n'),
        ("kaldi", "wav.scp", b"a a.wav\nb touch pwned |\n"),
    ]


def manifest(folder: Path, draw: random.Random) -> None:
    form, name, raw = draw.choice(sound_lists())
    soundfile.write(folder / "a.wav", np.zeros(RATE // 4), RATE)
    path = folder / name
    lines = raw.splitlines(keepends=True)
    if raw[:1] == b"{" and draw.random() < 0.6:
        path.write_bytes(b"".join(json_line(changed(json.loads(line), draw)) for line in lines))
    else:
        path.write_bytes(damaged(raw, draw))
    told = draw.random() < 0.5
    if told:
        list(formats.read(path, form))
    select(Choice(manifest=path, format=form if told else formats.AUTO))


# Arrays


class Mkdir:
    """A pickle of it makes a folder when it is loaded."""

    def __reduce__(self) -> Any:
        import os

        return os.mkdir, ("pwned",)


@cache
def sound_arrays() -> list[bytes]:
    import torch

    def item(array: Any) -> Any:
        return {"id": "a", "net_input": {"src_tokens": array, "src_lengths": [1]}}

    made = []
    for items in ([item(np.ones((1, 160), np.float32))], [item(torch.ones(1, 160))], [item(Mkdir())]):
        for protocol in (2, 4):
            array = np.empty(1, dtype=object)
            array[:] = items
            buffer = io.BytesIO()
            np.lib.format.write_array_header_1_0(buffer, np.lib.format.header_data_from_array_1_0(array))
            buffer.write(pickle.dumps(array, protocol=protocol))
            made.append(buffer.getvalue())
    buffer = io.BytesIO()
    np.save(buffer, np.ones(10))
    return [*made, buffer.getvalue()]


def array(folder: Path, draw: random.Random) -> None:
    raw, whole = draw.choice(sound_arrays()), draw.random() < 0.1
    (folder / "list.npy").write_bytes(raw if whole else damaged(raw, draw))
    select(Choice(manifest=folder / "list.npy"))


# Shapes


@cache
def sound_shapes() -> list[tuple[str, bytes]]:
    import torch

    rows = torch.tensor([[100, 10], [50, 5]], dtype=torch.int32)
    made = []
    for held in (rows, {"shape_info": rows, "frames": "raw"}, {"shape_info": Mkdir()}, rows.to_sparse(), rows.float()):
        for zipped in (True, False):
            buffer = io.BytesIO()
            torch.save(held, buffer, _use_new_zipfile_serialization=zipped)
            made.append(("pt", buffer.getvalue()))
    return [*made, ("tsv", b"frames\ttokens\n100\t10\n50\t5\n"), ("tsv", b"raw_frames\ttokens\n100\t10\n")] * 1


def shape(folder: Path, draw: random.Random) -> None:
    suffix, raw = draw.choice(sound_shapes())
    path = folder / f"shapes{draw.randrange(10**9)}.{suffix}"
    path.write_bytes(raw if draw.random() < 0.05 else damaged(raw, draw))
    shapes.read(path)


# Containers

_HERE, _LISTS = b"@folder@", (".scp", ".list", ".json", ".jsonl")
"""What stands in lists for the folder that they are in."""


@cache
def sound_containers() -> list[tuple[str, dict[str, bytes]]]:
    """(path of the list in its folder, content of every file by path) of sets in tar files, tables and archives."""
    made = []
    for kind in ("webdataset", "webdataset in a list", "nemo-tarred", "shar", "huggingface", "huggingface in arrow",
                 "kaldi in an archive"):  # fmt: skip
        with TemporaryDirectory() as folder:
            base, items = Path(folder), speech_sets.waves(3)
            speech_sets.write_sounds(base / "sound", items)
            path = speech_sets.KINDS[kind](base, items)
            files = {str(one.relative_to(base)): one.read_bytes() for one in base.rglob("*") if one.is_file()}
            moved = {one: raw.replace(folder.encode(), _HERE) if one.endswith(_LISTS) else raw
                     for one, raw in files.items()}  # fmt: skip
            made.append((str(path.relative_to(base)), moved))
    return made


def container(folder: Path, draw: random.Random) -> None:
    name, files = draw.choice(sound_containers())
    hurt = draw.choice([one for one in files if not one.startswith("sound")])
    for one, raw in files.items():
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        front = draw.random() < 0.5  # headers and footers are small, and sound is large
        ends = damaged(raw[:600], draw) + raw[600:] if front else raw[:-600] + damaged(raw[-600:], draw)
        (folder / one).write_bytes((ends if one == hurt else raw).replace(_HERE, str(folder).encode()))
    select(Choice(manifest=folder / name))


# Results of other tools


@cache
def sound_results() -> list[tuple[str, bytes]]:
    """(name of the file, content): of each tool, a line of the leaderboard's manifest, and a database."""
    line = {"audio_filepath": "a", "duration": 2.0, "time": 0.5, "text": "x", "pred_text": "y"}
    chunks = [{**line, "parent_id": "s", "chunk_index": index} for index in (0, 1)]
    with TemporaryDirectory() as folder:
        database = foreign_results.stt_benchmark(Path(folder, "s.db")).read_bytes()
    return [
        *[("x.json", json_line(make())) for make in (foreign_results.vllm, foreign_results.guidellm)],
        ("x.json", json_line(foreign_results.aiperf())),
        ("x.json", json_line([foreign_results.vllm(), foreign_results.vllm()])),
        ("MODEL_a_DATASET_b.jsonl", json_line(line) + json_line(line)),
        ("MODEL_a_DATASET_c.jsonl", b"".join(map(json_line, chunks))),
        ("s.db", database),
    ]


def foreign(folder: Path, draw: random.Random) -> None:
    """A result file of another tool: read as what it is; what was imported is shown and exported now and then."""
    name, raw = draw.choice(sound_results())
    path = folder / name
    if name != "s.db" and draw.random() < 0.7:
        path.write_bytes(b"".join(json_line(changed(json.loads(one), draw)) for one in raw.splitlines()))
    else:
        path.write_bytes(damaged(raw, draw))
    if name.endswith("l"):
        read_manifest(path)
        return
    run = import_results([path], folder / f"run{draw.randrange(10**9)}").path
    made = tables(hosts_apart(RunDir.existing(run).records()), None)
    if draw.random() < 0.3:
        draw_tables(made, Console(file=io.StringIO(), width=160))
        export_run(run, "openmetrics", str(folder / f"{run.name}.prom"))


TARGETS: dict[str, tuple[Target, int]] = {
    "plans": (plan, 2300), "records": (records, 3000), "audio": (sound, 1200), "arrays": (array, 900),
    "manifests": (manifest, 1000), "shapes": (shape, 600), "foreign": (foreign, 600), "containers": (container, 400),
}  # fmt: skip
"""Each kind of input, and how many of it the campaign tries: 10,000 together."""


def largest_lines(folder: Path, draw: random.Random) -> None:
    """Records with one line of a hundred megabytes: sound JSON, depth without end, a number, or no line end at all."""
    whole = json_line(sound_records()[0][0])
    size = 100 * 2**20
    long = draw.choice(
        (b'{"schema":1,"reason":"' + b"x" * size + b'"}\n', b"[" * size + b"\n", b"9" * size + b"\n", b" " * size)
    )
    run = RunDir.existing(_run(folder, [whole, long, whole], random.Random(1)))
    found = run.records()
    assert found
    assert [skipped.count for skipped in run.skipped] == [1]
    assert "64 MiB" in run.notes[0]
