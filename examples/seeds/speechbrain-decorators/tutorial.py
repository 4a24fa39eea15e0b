"""The decorators of SpeechBrain's profiling tutorial, with Speechmeter: a function, a Brain, a pretrained model.

Needs torch and nothing else of speech. `python tutorial.py -o profiles` writes traces, flame-graph stacks and tables.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import speechmeter

MELS, WIDTH, TOKENS = 80, 128, 32


class Encoder(torch.nn.Module):
    """Log-mel frames to one vector a frame."""

    def __init__(self) -> None:
        super().__init__()
        self.subsample = torch.nn.Conv1d(MELS, WIDTH, kernel_size=3, stride=2)
        self.recurrent = torch.nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """(batch, frames, mels) → (batch, frames / 2, width)."""
        frames = torch.relu(self.subsample(features.transpose(1, 2))).transpose(1, 2)
        return self.recurrent(frames)[0]


class Brain:
    """As SpeechBrain's: `fit` and `evaluate` go through batches, each by a method of its own."""

    def __init__(self) -> None:
        self.modules = torch.nn.ModuleDict({"encoder": Encoder(), "head": torch.nn.Linear(WIDTH, TOKENS)})
        self.optimizer = torch.optim.SGD(self.modules.parameters(), lr=0.1)

    def compute_loss(self, batch: torch.Tensor) -> torch.Tensor:
        """A loss that needs no labels, so that the example needs no data."""
        return self.modules["head"](self.modules["encoder"](batch)).logsumexp(-1).mean()

    def fit_batch(self, batch: torch.Tensor) -> None:
        """Train on a batch."""
        loss = self.compute_loss(batch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def evaluate_batch(self, batch: torch.Tensor) -> float:
        """Loss of a batch."""
        with torch.no_grad():
            return self.compute_loss(batch).item()

    def fit(self, epochs: int, train: list[torch.Tensor], valid: list[torch.Tensor]) -> None:
        """Train, and validate after each epoch."""
        for _ in range(epochs):
            for batch in train:
                self.fit_batch(batch)
            for batch in valid:
                self.evaluate_batch(batch)

    def evaluate(self, test: list[torch.Tensor]) -> float:
        """Mean loss."""
        return sum(map(self.evaluate_batch, test)) / len(test)


class Recogniser(torch.nn.Module):
    """A pretrained interface: neither `fit` nor `evaluate`, but methods of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.mods = torch.nn.ModuleDict({"encoder": Encoder(), "head": torch.nn.Linear(WIDTH, TOKENS)})

    def encode_batch(self, features: torch.Tensor) -> torch.Tensor:
        """Vectors of the encoder."""
        return self.mods["encoder"](features)

    def transcribe_batch(self, features: torch.Tensor) -> list[list[int]]:
        """The likeliest token of each frame, repeats and blanks left out."""
        best = self.mods["head"](self.encode_batch(features)).argmax(-1)
        return [[token for token in torch.unique_consecutive(row).tolist() if token] for row in best]


def a_function(batches: list[torch.Tensor], folder: Path) -> None:
    """Every call is a step. Two ways to write the same function, then what differs between their traces."""
    encoder = Encoder()
    print("\n# A function\n")

    @speechmeter.export(dir_name=folder / "one-by-one")
    @speechmeter.profile(name="one-by-one", modules={"encoder": encoder})
    def one_by_one(batch: torch.Tensor) -> None:
        with torch.no_grad(), speechmeter.label("is it faster one by one?"):
            for item in batch:
                encoder(item[None])

    @speechmeter.export(dir_name=folder / "together")
    @speechmeter.profile(name="together", modules={"encoder": encoder})
    def together(batch: torch.Tensor) -> None:
        with torch.no_grad(), speechmeter.label("or all together?"):
            encoder(batch)

    for batch in batches:
        one_by_one(batch)
        together(batch)
    print(together.profile.table("modules"))
    print(together.profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=5))
    print(f"what differs: speechmeter trace diff {folder / 'one-by-one'} {folder / 'together'} --changed count")


def a_brain(batches: list[torch.Tensor], folder: Path) -> None:
    """`fit`, its validation and `evaluate` are recorded apart, each by the schedule."""
    print("\n# A Brain\n")

    @speechmeter.export(dir_name=folder / "brain", use_gzip=True)
    @speechmeter.schedule(wait=0, warmup=1, active=2)
    @speechmeter.profile_optimiser
    class MyBrain(Brain):
        pass

    brain = MyBrain()
    brain.fit(1, batches, batches[:2])
    brain.evaluate(batches)
    for name, profile in brain.profile.methods.items():
        print(f"{name}: {profile.seen} steps ran, {profile.steps} recorded")
    print(brain.profile.table("modules"))


def a_pretrained_model(batches: list[torch.Tensor], folder: Path) -> None:
    """Every public method of the object is recorded; `class_hooks` would choose some."""
    print("\n# A pretrained model\n")
    recogniser = speechmeter.profile_analyst(Recogniser().eval())
    with torch.no_grad():
        for batch in batches:
            recogniser.transcribe_batch(batch)
    print(recogniser.profile.table("modules"))
    print(recogniser.profile.table("flops"))
    recogniser.profile.export(folder / "recogniser")


def main() -> None:
    """Run the three parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("profiles"), help="folder for the files")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each utterance")
    parser.add_argument("--batch", type=int, default=4, help="utterances in a batch")
    parser.add_argument("--steps", type=int, default=5, help="batches")
    asked = parser.parse_args()
    torch.manual_seed(0)
    batches = [torch.randn(asked.batch, round(100 * asked.seconds), MELS) for _ in range(asked.steps)]
    a_function(batches, asked.output)
    a_brain(batches, asked.output)
    a_pretrained_model(batches, asked.output)


if __name__ == "__main__":
    main()
