"""Shape files: torch's `.pt`, either the bare tensor of the original or one with the kind of its frames, and `.tsv`."""

from __future__ import annotations

import io
import re
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import write_whole
from speechmeter.workloads.manifests.lines import numbered_lines
from speechmeter.workloads.shapes.table import FRAMES, LONGEST, RAW, SUBSAMPLED, Shapes

_ROWS, _FRAMES = "shape_info", "frames"
"""Keys of our `.pt`: the tensor and what its T counts. A bare tensor holds subsampled frames, as in the original."""
_HEADERS = {"raw_frames\ttokens": RAW, "frames\ttokens": SUBSAMPLED}
"""First lines of a `.tsv`."""
MOST_ROWS = 10_000_000
"""Larger files are refused."""
_LARGEST_FILE = 256 << 20  # bytes, unpacked: enough for that many rows of 64-bit numbers
_GLOBAL = re.compile(r"GLOBAL ([\w.]{1,100})")
_NUMBER = re.compile(r"[0-9]{1,9}")
_FIX = "give an int32 tensor (rows, 2) of frames and tokens, or make one with `speechmeter shapes`"


def is_shape_file(path: Path) -> bool:
    """Whether a path is named, or begins, as a shape file does."""
    if path.suffix != ".tsv" or not path.is_file():
        return path.suffix == ".pt"
    _, first = next(numbered_lines(path), (0, ""))
    return first in _HEADERS


def read(path: Path) -> Shapes:
    """The rows of a shape file. Raises InputError for any other file; nothing in a file is ever run."""
    if not path.is_file():
        raise InputError(
            f"there is no file {str(path)!r}",
            key="shapes",
            fix="correct the path, or leave out `file` to use generated shapes",
        )
    changed = path.stat()
    return _read(path, changed.st_mtime_ns, changed.st_size)


@lru_cache(maxsize=2)
def _read(path: Path, _changed_ns: int, _bytes: int) -> Shapes:
    rows, frames = _from_tsv(path) if path.suffix == ".tsv" else _from_torch(path)
    frame_counts, tokens = rows[:, 0], rows[:, 1]
    if frame_counts.min() < 1 or tokens.min() < 0:
        raise _refused(path, f"has a row with {frame_counts.min()} frames or {tokens.min()} tokens")
    if (most := max(frame_counts.max(), tokens.max())) > LONGEST:
        raise _refused(path, f"has a row with {most:,} frames or tokens")
    return Shapes(rows=rows.astype("int32"), frames=frames, origin=path.name)


def write(path: Path, shapes: Shapes, *, bare: bool = False) -> None:
    """Write `.pt` or `.tsv` by the ending; `bare` is the original's tensor alone, for subsampled frames."""
    if path.suffix not in (".pt", ".tsv"):
        raise InputError(
            f"the suffix of {path.name!r} is not supported", key="output", fix="use the suffix .pt or .tsv"
        )
    if bare and (path.suffix != ".pt" or shapes.frames != SUBSAMPLED):
        raise InputError(
            "a bare tensor cannot store whether its frames are raw or subsampled",
            key="bare",
            fix="use `bare` only for a .pt file with subsampled frames",
        )
    torch = _torch("output") if path.suffix == ".pt" else None
    if torch is None:
        header = next(line for line, frames in _HEADERS.items() if frames == shapes.frames)
        lines = [header, *(f"{frames}\t{tokens}" for frames, tokens in shapes.rows.tolist())]
        write_whole(path, "".join(f"{line}\n" for line in lines).encode())
        return
    tensor = torch.from_numpy(shapes.rows.copy())
    held = io.BytesIO()  # writing to a file, torch raises RuntimeError for whatever the disk refuses
    torch.save(tensor if bare else {_ROWS: tensor, _FRAMES: shapes.frames}, held)
    write_whole(path, held.getvalue())


def _torch(key: str) -> Any:
    try:
        import torch
    except ImportError:
        raise InputError(
            "a .pt file needs torch, which is not installed",
            key=key,
            fix="use a .tsv file, or pip install 'speechmeter[torch]'",
        ) from None
    return torch


def _from_torch(path: Path) -> tuple[Any, str]:
    torch = _torch("shapes")
    # refuse what would take more memory than the longest table, before torch makes it: a .pt file is a zip file
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):  # torch's old format, or another file
        unpacked = 0
    if max(path.stat().st_size, unpacked) > _LARGEST_FILE:
        raise _refused(path, f"is larger than {_LARGEST_FILE >> 20} MiB")
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the unpickler and the archive reader raise whatever a broken file makes them raise
        asked = _GLOBAL.search(str(error))  # torch's own message is not shown: it advises to read the file unsafely
        why = f"it uses {asked[1]}" if asked else "it does not hold plain tensors"
        raise InputError(
            f"{path.name!r} is refused: {why}", key="shapes", fix=f"{_FIX}; nothing in it was run"
        ) from error
    held, frames = (held.get(_ROWS), held.get(_FRAMES)) if isinstance(held, dict) else (held, SUBSAMPLED)
    if not isinstance(held, torch.Tensor) or frames not in FRAMES:
        raise _refused(path, "does not hold a table of shapes")
    if held.layout != torch.strided or held.device.type != "cpu" or held.is_quantized:
        raise _refused(path, "contains a tensor that is not dense")
    if held.dtype not in (torch.int32, torch.int64, torch.int16):
        raise _refused(path, f"holds {held.dtype}, not whole numbers")
    if held.ndim != 2 or held.shape[1] != 2:
        raise _refused(path, f"holds a tensor of shape {tuple(held.shape)}, not (rows, 2)")
    if not 1 <= len(held) <= MOST_ROWS:
        raise _refused(path, f"holds {len(held)} rows, not 1 to {MOST_ROWS:,}")
    return held.numpy(), frames


def _from_tsv(path: Path) -> tuple[Any, str]:
    import numpy as np

    lines = numbered_lines(path)
    _, first = next(lines, (0, ""))
    if first not in _HEADERS:
        raise InputError(
            f"{path.name!r} does not begin with {' or '.join(map(repr, _HEADERS))}", key="shapes", fix=_FIX
        )
    rows: list[tuple[int, int]] = []
    for number, line in lines:
        frames, _, tokens = (line or "").partition("\t")
        if not (_NUMBER.fullmatch(frames) and _NUMBER.fullmatch(tokens)):
            raise _refused(path, f"line {number} is not `frames<TAB>tokens`")
        rows.append((int(frames), int(tokens)))
        if len(rows) > MOST_ROWS:
            break
    if not 1 <= len(rows) <= MOST_ROWS:
        raise _refused(path, f"holds {len(rows)} rows, not 1 to {MOST_ROWS:,}")
    return np.array(rows, dtype=np.int64), _HEADERS[first or ""]


def _refused(path: Path, what: str) -> InputError:
    return InputError(f"{path.name!r} {what}", key="shapes", fix=_FIX)
