"""Small random models that count their own arithmetic by hand while they run: what a count is held against.

Every layer adds `2 × rows × columns in × columns out` for each product that it asks for, from the sizes it really has.
How much is done (masks, loops, experts, pieces, caches, threads) follows from values; in which way is drawn at random.
"""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn

WIDTH = 8


class Counted(nn.Module):
    """A layer on (frames, WIDTH) that adds what it does to a tally which all layers of a model share."""

    def __init__(self, tally: list[int], draw: random.Random) -> None:
        super().__init__()
        self.tally = tally
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.way = draw.choice(self.ways)

    ways: tuple[str, ...] = ("",)

    def add(self, rows: int, columns: int = WIDTH, *, each: int = 2) -> None:
        self.tally[0] += each * rows * WIDTH * columns

    def work(self, data: torch.Tensor) -> torch.Tensor:
        """One product for every row, with values that stay of a size."""
        self.add(data.numel() // WIDTH)
        return torch.tanh(self.linear(data)) * 3


class Plain(Counted):
    def forward(self, data):
        return self.work(data)


class Masked(Counted):
    """Works on the frames that a mask picks."""

    ways = ("index", "masked_select", "where", "nonzero", "put", "memory", "uint8")

    def forward(self, data):
        mask = self.work(data).sum(-1) > 0
        if self.way == "index":
            self.work(data[mask])
        elif self.way == "masked_select":
            self.work(data.masked_select(mask[:, None]).reshape(-1, WIDTH))
        elif self.way == "where":
            self.work(data[torch.where(mask)[0]])
        elif self.way == "nonzero":
            self.work(data.index_select(0, mask.nonzero().squeeze(1)))
        elif self.way == "put":
            found = torch.zeros_like(data)
            found[mask] = self.work(data[mask])
            return found
        elif self.way == "memory":
            memory = torch.zeros(len(data), WIDTH)
            memory[:] = self.work(data)
            self.work(data[memory[:, 0] > 0])
        else:
            self.work(data[mask.to(torch.uint8).bool()])
        return data


class Looped(Counted):
    """Does its work as often as a value says, which is read in one of many ways."""

    ways = ("item", "int", "tolist", "numpy", "asarray", "while", "range", "equal", "iterate", "allclose")

    def forward(self, data):
        for _ in range(self.times(self.work(data).argmax(-1)[0] % 4)):
            data = self.work(data)
        return data

    def times(self, best):
        if self.way == "while":
            times = 0
            while best > times:
                times += 1
            return times
        return {
            "item": lambda: best.item(),
            "int": lambda: int(best),
            "tolist": lambda: best.reshape(1).tolist()[0],
            "numpy": lambda: int(best.numpy()),
            "asarray": lambda: int(np.asarray(best)),
            "range": lambda: len(range(best)),
            "equal": lambda: 1 + 2 * torch.equal(best, torch.tensor(3)),
            "iterate": lambda: sum(int(one) for one in best.reshape(1)),
            "allclose": lambda: 1 + torch.allclose(best.float(), torch.tensor(2.0)),
        }[self.way]()


class Pieces(Counted):
    """Works on as many rows as there are different values, or as values add up to."""

    ways = ("unique", "consecutive", "bincount", "repeat", "split", "packed", "counts", "dim", "histogram")

    def forward(self, data):
        best = self.work(data).argmax(-1)
        if self.way == "repeat":
            self.work(data.repeat_interleave(best % 3, 0))
        elif self.way == "split":
            self.work(data.tensor_split(best[:1] % len(data))[0])
        elif self.way == "packed":
            self.work(nn.utils.rnn.pack_padded_sequence(data[:, None], (best[:1] % len(data)) + 1).data)
        elif self.way == "counts":
            for count in torch.bincount(best, minlength=WIDTH).tolist():
                self.work(data[:count])
        else:
            found = {
                "unique": lambda: len(best.unique()),
                "consecutive": lambda: len(torch.unique_consecutive(best)),
                "bincount": lambda: len(torch.bincount(best)),
                "dim": lambda: len(best[:, None].unique(dim=0)),
                "histogram": lambda: int(torch.histc(best.float(), bins=4).max()),
            }[self.way]()
            self.work(data[:found])
        return data


class Experts(Counted):
    """Every frame goes to the expert that a router picks; they are of unlike size."""

    ways = ("mask", "where", "sorted", "hit")

    def __init__(self, tally, draw):
        super().__init__(tally, draw)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH * size) for size in (1, 2, 5))

    def forward(self, data):
        chosen = self.work(data)[:, :3].argmax(-1)
        if self.way == "sorted":
            sizes = torch.bincount(chosen, minlength=3).tolist()
            for expert, part in zip(self.experts, data[chosen.argsort()].split(sizes), strict=True):
                self.ask(expert, part)
        elif self.way == "hit":
            for place in (nn.functional.one_hot(chosen, 3).sum(0) > 0).nonzero():
                self.ask(self.experts[int(place)], data[chosen == place])
        else:
            for place, expert in enumerate(self.experts):
                mask = chosen == place
                self.ask(expert, data[mask] if self.way == "mask" else data[torch.where(mask)[0]])
        return data

    def ask(self, expert, data):
        self.add(len(data), expert.out_features)
        expert(data)


class Threaded(Counted):
    """Two or three layers at once: in threads, in a pool that it keeps, in one that it makes."""

    ways = ("threads", "kept pool", "new pool", "mapped")

    def __init__(self, tally, draw):
        super().__init__(tally, draw)
        self.pool = ThreadPoolExecutor(2) if self.way in ("kept pool", "mapped") else None
        self.lock = threading.Lock()

    def beside(self, data):
        with self.lock:
            self.work(data)

    def forward(self, data):
        if self.way == "threads":
            threads = [threading.Thread(target=self.beside, args=(data,)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        elif self.way == "mapped":
            list(self.pool.map(self.beside, [data, data, data]))
        elif self.way == "kept pool":
            self.pool.submit(self.beside, data).result()
        else:
            with ThreadPoolExecutor(2) as pool:
                pool.submit(self.beside, data)
        return self.work(data)


class Nested(Counted):
    """Items of unlike lengths without padding: an encoder of torch's, or one layer."""

    ways = ("encoder", "strided", "jagged", "attention")

    def __init__(self, tally, draw):
        super().__init__(tally, draw)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, draw.choice([1, 2]))

    def forward(self, data):
        lengths = [len(data), max(1, len(data) // 2)]
        if self.way == "encoder":
            mask = torch.arange(len(data))[None] >= torch.tensor(lengths)[:, None]
            for length in lengths * len(self.encoder.layers):
                self.add(length, 8 * WIDTH)  # four projections, and two layers that are twice as wide inside
                self.tally[0] += 4 * length * length * WIDTH
            self.encoder(torch.stack([data, data]), src_key_padding_mask=mask)
        elif self.way == "attention":
            heads = [data[:length].reshape(length, 2, WIDTH // 2) for length in lengths]
            query = torch.nested.nested_tensor(heads, layout=torch.jagged).transpose(1, 2)
            self.tally[0] += sum(4 * length * length * WIDTH for length in lengths)
            nn.functional.scaled_dot_product_attention(query, query, query)
        else:
            items = [data[:length] for length in lengths]
            self.add(sum(lengths))
            self.linear(torch.nested.nested_tensor(items, layout=getattr(torch, self.way)))
        return data


class Complex(Counted):
    """Products of complex numbers: a multiply-accumulate is eight real operations."""

    ways = ("matrix", "vector", "batch", "sum")

    def forward(self, data):
        state = torch.complex(self.work(data), data)
        other = torch.complex(data[:WIDTH], data[:WIDTH])
        if self.way == "vector":
            self.add(len(data), 1, each=8)
            (state @ other[0]).abs()
        elif self.way == "batch":
            self.add(2 * len(data), each=8)
            torch.bmm(torch.stack([state, state]), torch.stack([other, other]))
        elif self.way == "sum":
            self.add(len(data), each=8)
            torch.einsum("fi,oi->fo", state, other)
        else:
            self.add(len(data), each=8)
            state @ other
        return data


class Caching(Counted):
    """Keeps a part of what it computed: in the first call, or for every size."""

    ways = ("first", "size")

    def __init__(self, tally, draw):
        super().__init__(tally, draw)
        self.kept = {}

    def forward(self, data):
        key = len(data) if self.way == "size" else 0
        if key not in self.kept:
            self.kept[key] = self.work(self.work(data))
        return self.work(data)


class Branching(Counted):
    """One of two branches, by a value."""

    ways = ("if", "where both")

    def forward(self, data):
        positive = self.work(data).mean() > 0
        if self.way == "where both":
            return torch.where(positive, self.work(data), data)
        return self.work(self.work(data)) if positive else self.work(data)


KINDS = (Plain, Masked, Looped, Pieces, Experts, Threaded, Nested, Complex, Caching, Branching)


class RandomModel(nn.Module):
    """One to three layers of these kinds after one another, and what it is fed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        torch.manual_seed(seed)
        self.tally = [0]
        kinds = [KINDS[seed % len(KINDS)], *draw.choices(KINDS, k=draw.choice([0, 0, 1, 2]))]
        self.layers = nn.ModuleList(kind(self.tally, draw) for kind in kinds)
        sound = np.random.default_rng(seed).standard_normal((draw.choice([8, 11, 24]), WIDTH))
        self.sound = torch.from_numpy(sound.astype(np.float32))

    def forward(self, data):
        for layer in self.layers:
            data = layer(data)
        return data

    def close(self) -> None:
        """End the threads of its pools."""
        for layer in self.layers:
            if getattr(layer, "pool", None) is not None:
                layer.pool.shutdown()

    @property
    def what(self) -> str:
        """Its layers and what was drawn for them."""
        return " → ".join(f"{type(layer).__name__} {layer.way}".strip() for layer in self.layers)
