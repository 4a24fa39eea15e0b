"""A small Conformer transducer that names its parts with `record_function`, as one does to profile it by hand.

`make` gives Speechmeter the model and how it is trained. The labels are ordinary torch code: nothing here is special.
"""

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import record_function

from speechmeter.transducer import prune_ranges, pruned_rnnt_loss, simple_rnnt_loss, take_states

BANDS, VOCABULARY, BLANK = 80, 100, 0
LAYERS, WIDTH, HEADS, INNER, KERNEL = 2, 64, 4, 256, 15
STATES = 5
"""Of the predictor that the pruned loss looks at for each frame."""


def subsampled(frames):
    """How many frames are left after two convolutions of stride 2."""
    return ((frames - 1) // 2 - 1) // 2


class Layer(nn.Module):
    """Feed-forward, attention, convolution, feed-forward; each is a label."""

    def __init__(self):
        super().__init__()
        self.feed_forward_macaron = feed_forward()
        self.self_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.conv = nn.Conv1d(WIDTH, WIDTH, KERNEL, padding=KERNEL // 2, groups=WIDTH)
        self.feed_forward = feed_forward()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, states, padding):
        """(items, frames, width) → the same."""
        with record_function("rnnt_encoder_layer_feed_forward_macaron"):
            states = states + self.feed_forward_macaron(states)
        with record_function("rnnt_encoder_layer_self_attn"):
            states = states + self.self_attn(states, states, states, key_padding_mask=padding, need_weights=False)[0]
        with record_function("rnnt_encoder_layer_conv"):
            real = states.masked_fill(padding.unsqueeze(2), 0.0)
            states = states + self.conv(real.transpose(1, 2)).transpose(1, 2)
        with record_function("rnnt_encoder_layer_feed_forward"):
            states = states + self.feed_forward(states)
        return self.norm(states)


def feed_forward():
    """Two linear layers."""
    return nn.Sequential(nn.Linear(WIDTH, INNER), nn.SiLU(), nn.Linear(INNER, WIDTH))


class Encoder(nn.Module):
    """Subsampling by 4, then layers."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.SiLU(), nn.Conv2d(8, 16, 3, stride=2), nn.SiLU())
        self.out = nn.Linear(16 * subsampled(BANDS), WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, features, lengths):
        """(items, frames, 80) → (items, frames / 4, width)."""
        with record_function("rnnt_encoder_embed"):
            states = self.out(self.embed(features.unsqueeze(1)).transpose(1, 2).flatten(2))
        padding = torch.arange(states.shape[1], device=states.device) >= lengths.unsqueeze(1)
        for layer in self.layers:
            with record_function("rnnt_encoder_layer"):
                states = layer(states, padding)
        return states


class Decoder(nn.Module):
    """Stateless: it sees the last two tokens."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.conv = nn.Conv1d(WIDTH, WIDTH, 2, groups=WIDTH)

    def forward(self, targets):
        """(items, tokens) → (items, tokens + 1, width)."""
        before = functional.pad(targets, (2, 0), value=BLANK)
        return functional.relu(self.conv(self.embedding(before).transpose(1, 2)).transpose(1, 2))


class Transducer(nn.Module):
    """Features, their true lengths and the targets to one number."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()
        self.joiner = nn.Linear(WIDTH, VOCABULARY)
        self.simple_am, self.simple_lm = nn.Linear(WIDTH, VOCABULARY), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, features, frames, targets, tokens):
        """Half the simple loss and the pruned one."""
        with record_function("rnnt_encoder"):
            encoded = self.encoder(features, frames)
        with record_function("rnnt_decoder"):
            decoded = self.decoder(targets)
        with record_function("rnnt_loss_simple"):
            simple = simple_rnnt_loss(
                self.simple_am(encoded), self.simple_lm(decoded), targets, frames, tokens, blank=BLANK, reduction="sum"
            )
        with record_function("rnnt_loss_pruned"):
            starts = prune_ranges(simple, frames, tokens, states=STATES)
            logits = self.joiner(torch.tanh(encoded.unsqueeze(2) + take_states(decoded, starts, states=STATES)))
            pruned = pruned_rnnt_loss(logits, targets, starts, frames, tokens, blank=BLANK, reduction="sum")
        return 0.5 * simple.loss + pruned


class Training:
    """How Speechmeter trains it: random features for the shapes that a plan feeds."""

    def __init__(self):
        self.model = Transducer()
        self.modules = {"model": self.model}

    def data(self, batch):
        """Features, frames after subsampling, targets and their lengths, on the device of the model."""
        device = self.model.joiner.weight.device
        raw, tokens = torch.from_numpy(batch.data).long().T
        draw = torch.Generator().manual_seed(0)
        features = torch.randn(len(raw), int(raw.max()), BANDS, generator=draw)
        targets = torch.randint(1, VOCABULARY, (len(raw), int(tokens.max())), generator=draw)
        return [one.to(device) for one in (features, subsampled(raw), targets, tokens)]

    def forward(self, inputs):
        """The model computes its losses itself."""
        return self.model(*inputs)

    def loss(self, output):
        """As the model gave it."""
        return output


def make():
    """What the plan names."""
    return Training()
