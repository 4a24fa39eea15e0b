"""The real cells of a batch in tiles of neighbouring frames and states, listed on the device. Imports triton.

A tile is (utterance, first frame, first state). Its cells are rows of the matrices that the joiner multiplies: row
i · STATES + j is frame i and state j of the tile. The tiles of the same frames, a band, come one after another.

Tiles are computed in chunks, which hold whole bands: a chunk has the bands that begin among its tiles, and ends with
the last of them. How many tiles there are, the device knows. The host gets the number when it arrives and never waits
for it: until then launches reach to the most there can be, and programs beyond the count end at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl

from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.fused.launching import Launch, blocks_for, next_power_of_2

FRAMES = 32
STATES = 4
CELLS = FRAMES * STATES
FRAMES_IN_TILE = tl.constexpr(FRAMES)
STATES_IN_TILE = tl.constexpr(STATES)
CELLS_IN_TILE = tl.constexpr(CELLS)
PLACES = tl.constexpr(2**20)  # a tile's number is (utterance · PLACES + frame) · PLACES + state


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """The numbers of tiles (int64), how many there are (int64, one entry), the most, and the most of a band."""

    numbers: torch.Tensor
    count: torch.Tensor
    most: int
    most_of_band: int
    arriving: list[tuple[torch.Tensor, torch.cuda.Event]] = field(default_factory=list)

    def send_count(self) -> None:
        """Send the count to the host, behind what was launched so far."""
        if self.count.is_cuda and not torch.cuda.is_current_stream_capturing():
            there = torch.empty(1, dtype=torch.int64, pin_memory=True)
            there.copy_(self.count, non_blocking=True)
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(self.count.device))
            self.arriving.append((there, event))

    def end(self) -> int:
        """Return the count if it has arrived, else the most there can be."""
        for there, event in self.arriving:
            if event.query():
                return int(there)
        return self.most


@triton.jit
def across(count, width):
    """How many tiles a band has in an utterance of `count` labels whose frames hold up to `width` states."""
    return tl.cdiv(tl.maximum(tl.minimum(count + 1, width), 0), STATES_IN_TILE)


@triton.jit(do_not_specialize=["batch", "padded_frames", "width"])
def _list(frames, counts, numbers, total, batch, padded_frames, width, BATCH: tl.constexpr, BLOCK: tl.constexpr):
    """Program b lists the tiles of utterance b behind those of all before it."""
    b = tl.program_id(0)
    others = tl.arange(0, BATCH)
    counts_of_others = tl.load(counts + others, mask=others < batch, other=-1)
    frames_of_others = tl.load(frames + others, mask=others < batch, other=0)
    of_others = tl.cdiv(tl.maximum(tl.minimum(frames_of_others, padded_frames), 0), FRAMES_IN_TILE)
    of_others *= across(counts_of_others, width)
    first = tl.sum(tl.where(others < b, of_others, 0), 0)
    own = tl.sum(tl.where(others == b, of_others, 0), 0)
    of_band = across(tl.load(counts + b), width)
    for start in tl.range(0, own, BLOCK):
        tile = start + tl.arange(0, BLOCK)
        frame = (tile // of_band).to(tl.int64) * FRAMES_IN_TILE
        state = (tile % of_band).to(tl.int64) * STATES_IN_TILE
        tl.store(numbers + first + tile, (b.to(tl.int64) * PLACES + frame) * PLACES + state, mask=tile < own)
    if b == batch - 1:
        tl.store(total, (first + own).to(tl.int64))


@triton.jit
def found(numbers, total, tile, first, chunk):
    """The number of a tile, and whether its band begins in the chunk that starts with tile `first`."""
    there = tile < tl.load(total)
    number = tl.load(numbers + tile, mask=there, other=0)
    band = tile - (number % PLACES).to(tl.int32) // STATES_IN_TILE
    return number, there & (band >= first) & (band < first + chunk)


@triton.jit
def edge(numbers, total, counts, width, tile):
    """Where the first band begins that does not begin before `tile`."""
    end = tl.load(total).to(tl.int32)
    there = tile < end
    number = tl.load(numbers + tile, mask=there, other=0)
    place = (number % PLACES).to(tl.int32) // STATES_IN_TILE
    of_band = across(tl.load(counts + number // PLACES // PLACES), width).to(tl.int32)
    return tl.where(there, tl.where(place == 0, tile, tile - place + of_band), end)


@triton.jit
def cells_of(number):
    """The utterance of a tile, and the frame and the state of each of its rows."""
    r = tl.arange(0, CELLS_IN_TILE)
    t = (number // PLACES % PLACES).to(tl.int32) + r // STATES_IN_TILE
    s = (number % PLACES).to(tl.int32) + r % STATES_IN_TILE
    return number // PLACES // PLACES, t, s


def listed(sizes: Sizes, width: int) -> Tiles:
    """Return the tiles of a batch whose frames hold up to `width` states, utterance after utterance."""
    device = sizes.frames_there.device
    most_of_band = blocks_for(width, STATES)
    most = sizes.batch * blocks_for(sizes.padded_frames, FRAMES) * most_of_band
    if sizes.seen is not None:
        bands = (blocks_for(frames, FRAMES) for frames in sizes.frames)
        most = sum(n * blocks_for(min(u + 1, width), STATES) for n, u in zip(bands, sizes.labels, strict=True))
    numbers = torch.empty(most, dtype=torch.int64, device=device)
    count = torch.empty(1, dtype=torch.int64, device=device)
    Launch(
        _list, (sizes.batch,), {"num_warps": 1}, frames=sizes.frames_there, counts=sizes.labels_there, numbers=numbers,
        total=count, batch=sizes.batch, padded_frames=sizes.padded_frames, width=width,
        BATCH=max(16, next_power_of_2(sizes.batch)), BLOCK=128,
    )()  # fmt: skip
    return Tiles(numbers=numbers, count=count, most=most, most_of_band=most_of_band)
