"""The same utterances written as every kind of list, by hand, as the formats' own tools write them."""

import csv
import gzip
import io
import json
import pickle
import tarfile
from pathlib import Path

import numpy as np
import soundfile

RATE = 16_000
WORDS = ("one", "two", "three", "four", "five")


def waves(count=20, seed=0):
    """(id, wave, text); lengths between 0.1 and 0.5 s, waves on the grid of 16 bits so that FLAC keeps them."""
    draw = np.random.default_rng(seed)
    made = []
    for index in range(count):
        length = int(draw.integers(RATE // 10, RATE // 2))
        steps = draw.integers(-3000, 3000, size=length)
        made.append((f"utt{index:02d}", (steps / 32768).astype(np.float32), f"{WORDS[index % 5]} {index}"))
    return made


def write_sounds(folder: Path, items, suffix=".flac"):
    folder.mkdir(parents=True, exist_ok=True)
    for name, wave, _ in items:
        soundfile.write(folder / f"{name}{suffix}", wave, RATE, subtype="PCM_16")


def fairseq(base: Path, items):
    rows = [f"{name}.flac\t{len(wave)}" for name, wave, _ in items]
    (base / "set.tsv").write_text("\n".join([str(base / "sound"), *rows]) + "\n")
    (base / "set.wrd").write_text("".join(f"{text}\n" for *_, text in items))
    return base / "set.tsv"


def _json_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def nemo(base, items):
    return _json_lines(
        base / "nemo.json",
        [
            {"audio_filepath": str(base / f"sound/{name}.flac"), "duration": len(wave) / RATE, "text": text}
            for name, wave, text in items
        ],
    )


def wenet(base, items):
    rows = [{"key": name, "wav": str(base / f"sound/{name}.flac"), "txt": text} for name, _, text in items]
    return _json_lines(base / "data.list", rows)


def lhotse(base, items):
    return _json_lines(base / "cuts.jsonl", [_cut(base, *item) for item in items])


def _cut(base, name, wave, text):
    duration = len(wave) / RATE
    source = {"type": "file", "channels": [0], "source": str(base / f"sound/{name}.flac")}
    recording = {
        "id": name, "sources": [source], "sampling_rate": RATE, "num_samples": len(wave), "duration": duration,
        "channel_ids": [0],
    }  # fmt: skip
    said = {"id": name, "recording_id": name, "start": 0.0, "duration": duration, "channel": 0, "text": text}
    return {
        "id": name, "start": 0.0, "duration": duration, "channel": 0, "supervisions": [said], "recording": recording,
        "type": "MonoCut",
    }  # fmt: skip


def kaldi(base, items):
    folder = base / "kaldi"
    folder.mkdir()
    (folder / "wav.scp").write_text("".join(f"{name} {base / f'sound/{name}.flac'}\n" for name, *_ in items))
    (folder / "text").write_text("".join(f"{name} {text}\n" for name, _, text in items))
    return folder


def kaldi_segments(base, items):
    """All utterances in one long recording."""
    folder = base / "kaldi-segments"
    folder.mkdir()
    soundfile.write(folder / "long.flac", np.concatenate([wave for _, wave, _ in items]), RATE, subtype="PCM_16")
    (folder / "wav.scp").write_text("long long.flac\n")
    ends = np.cumsum([len(wave) for _, wave, _ in items])
    rows = [
        f"{name} long {(end - len(wave)) / RATE:.7f} {end / RATE:.7f}\n"
        for (name, wave, _), end in zip(items, ends, strict=True)
    ]
    (folder / "segments").write_text("".join(rows))
    (folder / "text").write_text("".join(f"{name} {text}\n" for name, _, text in items))
    return folder


def speechbrain_csv(base, items):
    with (base / "set.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["ID", "duration", "wav", "spk_id", "wrd"])
        for name, wave, text in items:
            table.writerow([name, len(wave) / RATE, base / f"sound/{name}.flac", "someone", text])
    return base / "set.csv"


def speechbrain_json(base, items):
    rows = {
        name: {"wav": str(base / f"sound/{name}.flac"), "length": len(wave) / RATE, "words": text}
        for name, wave, text in items
    }
    (base / "set.json").write_text(json.dumps(rows, indent=2))
    return base / "set.json"


def audiofolder(base, items):
    folder = base / "audiofolder"
    write_sounds(folder, items)
    with (folder / "metadata.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "transcription"])
        table.writerows([f"{name}.flac", text] for name, _, text in items)
    return folder


def folder(base, items):
    made = base / "folder"
    write_sounds(made, items)
    for name, _, text in items:
        (made / f"{name}.txt").write_text(text + "\n")
    return made


def npy(base, items):
    """As fairseq's benchmark saves its lists: tensors inside a pickled list."""
    import torch

    rows = [
        {
            "id": name,
            "net_input": {"src_tokens": torch.from_numpy(wave)[None], "src_lengths": torch.tensor([len(wave)])},
            "text": text,
        }
        for name, wave, text in items
    ]
    np.save(base / "set.npy", rows, allow_pickle=True)
    return base / "set.npy"


def pickled(path: Path, content: bytes):
    """An .npy file whose pickle is these bytes."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": (1,)})
        file.write(content)
    return path


def pickled_list(path: Path, rows, protocol=4):
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return pickled(path, pickle.dumps(array, protocol=protocol))


def _tar(path, members):
    with tarfile.open(path, "w") as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


def _flac(base, name):
    return (base / f"sound/{name}.flac").read_bytes()


def _samples(base, items):
    for name, _, text in items:
        yield f"{name}.flac", _flac(base, name)
        yield f"{name}.txt", text.encode()


def webdataset(base, items):
    return _tar(base / "set.tar", _samples(base, items))


def webdataset_folder(base, items):
    """Two shards, with the texts in JSON."""
    made = base / "shards"
    made.mkdir()
    for number, part in enumerate((items[: len(items) // 2], items[len(items) // 2 :])):
        members = [
            member
            for name, _, text in part
            for member in ((f"{name}.json", json.dumps({"text": text}).encode()), (f"{name}.flac", _flac(base, name)))
        ]
        _tar(made / f"set-{number:04d}.tar", members)
    return made


def wenet_shards(base, items):
    """WeNet's list of shards."""
    _tar(base / "shards_0.tar", _samples(base, items))
    (base / "shards.list").write_text("shards_0.tar\n")
    return base / "shards.list"


def nemo_tarred(base, items):
    half = len(items) // 2
    for number, part in enumerate((items[:half], items[half:])):
        _tar(base / f"audio_{number}.tar", ((f"{name}.flac", _flac(base, name)) for name, *_ in part))
    rows = [
        {"audio_filepath": f"{name}.flac", "duration": len(wave) / RATE, "text": text, "shard_id": int(index >= half)}
        for index, (name, wave, text) in enumerate(items)
    ]
    return _json_lines(base / "tarred_audio_manifest.json", rows)


def shar(base, items):
    """As lhotse's SharWriter lays it out."""
    made = base / "shar"
    made.mkdir()
    rows = [_cut(base, *item) for item in items]
    for row in rows:
        row["recording"]["sources"] = [{"type": "shar", "channels": [0], "source": ""}]
    with gzip.open(made / "cuts.000000.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    members = [
        member
        for (name, *_), row in zip(items, rows, strict=True)
        for member in ((f"{name}.flac", _flac(base, name)), (f"{name}.json", json.dumps(row["recording"]).encode()))
    ]
    _tar(made / "recording.000000.tar", members)
    return made


def _table(base, items):
    import pyarrow as pa

    sound = [{"bytes": _flac(base, name), "path": f"{name}.flac"} for name, *_ in items]
    return pa.table({"audio": sound, "text": [text for *_, text in items]})


def parquet(base, items):
    """As a dataset on the Hugging Face hub is laid out, in small row groups."""
    import pyarrow.parquet as pq

    made = base / "hub"
    (made / "data").mkdir(parents=True)
    pq.write_table(_table(base, items), made / "data/test-00000-of-00001.parquet", row_group_size=3)
    return made


def saved_to_disk(base, items):
    import pyarrow as pa

    made = base / "saved"
    made.mkdir()
    table, name = _table(base, items), "data-00000-of-00001.arrow"
    with pa.OSFile(str(made / name), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    (made / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    return made


def kaldi_archive(base, items):
    """wav.ark, as `wav-copy` writes it: each WAV file behind its id."""
    made = base / "kaldi-ark"
    made.mkdir()
    places = []
    with (made / "wav.ark").open("wb") as file:
        for name, wave, _ in items:
            file.write(f"{name} ".encode())
            places.append(f"{name} {made / 'wav.ark'}:{file.tell()}\n")
            written = io.BytesIO()
            soundfile.write(written, wave, RATE, format="WAV", subtype="PCM_16")
            file.write(written.getvalue())
    (made / "wav.scp").write_text("".join(places))
    (made / "text").write_text("".join(f"{name} {text}\n" for name, _, text in items))
    return made


KINDS = {
    "fairseq": fairseq, "nemo": nemo, "wenet": wenet, "lhotse": lhotse, "kaldi": kaldi,
    "kaldi with segments": kaldi_segments, "speechbrain-csv": speechbrain_csv, "speechbrain-json": speechbrain_json,
    "audiofolder": audiofolder, "folder": folder, "npy": npy,
    "webdataset": webdataset, "webdataset in a folder": webdataset_folder, "webdataset in a list": wenet_shards,
    "nemo-tarred": nemo_tarred, "shar": shar, "huggingface": parquet, "huggingface in arrow": saved_to_disk,
    "kaldi in an archive": kaldi_archive,
}  # fmt: skip
