"""The same utterances written as every kind of list, by hand, as the formats' own tools write them."""

import csv
import json
import pickle
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


KINDS = {
    "fairseq": fairseq, "nemo": nemo, "wenet": wenet, "lhotse": lhotse, "kaldi": kaldi,
    "kaldi with segments": kaldi_segments, "speechbrain-csv": speechbrain_csv, "speechbrain-json": speechbrain_json,
    "audiofolder": audiofolder, "folder": folder, "npy": npy,
}  # fmt: skip
