"""What layers and models cost by formula, in floating-point operations: 2 × multiply-accumulate, from sizes alone.

Nothing here runs a model or asks torch. Counted: linear layers, convolutions, the products of attention, recurrent
cells, Fourier transforms (2.5 · N · log2 N a real transform of length N) and mel projections. Not counted: biases,
norms, activations, softmax, embeddings. A convolution's padding counts as if it were signal, and a causal attention as
if it were a full one, since that is what the kernels are handed.

A backward pass costs one more product for each factor that needs a gradient: a layer's weight, and its input unless
that is where the model begins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cost:
    """Operations of the forward pass and of the backward pass."""

    forward: float = 0.0
    backward: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.forward + other.forward, self.backward + other.backward)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.forward * times, self.backward * times)


def total(costs: Iterable[Cost]) -> Cost:
    return sum(costs, Cost())


# Layers


def product(rows: int, inner: int, columns: int, *, gradients: int = 2) -> Cost:
    """A matrix product of which so many of the two factors need a gradient."""
    forward = 2.0 * rows * inner * columns
    return Cost(forward, gradients * forward)


def linear(rows: int, inputs: int, outputs: int, *, first: bool = False) -> Cost:
    """A linear layer; the first one's input needs no gradient."""
    return product(rows, inputs, outputs, gradients=1 if first else 2)


def conv(positions: int, inputs: int, outputs: int, kernel: int, *, groups: int = 1, first: bool = False) -> Cost:
    """A convolution with so many output positions; `kernel` is the number of its taps over all dimensions."""
    return linear(positions, inputs // groups * kernel, outputs, first=first)


def transposed(positions: int, inputs: int, outputs: int, kernel: int, *, groups: int = 1, first: bool = False) -> Cost:
    """A transposed convolution with so many *input* positions: each scatters a whole kernel."""
    return linear(positions, inputs, outputs // groups * kernel, first=first)


def attention(queries: int, keys: int, width: int, *, recomputes: bool = False) -> Cost:
    """QKᵀ and AV over all heads, `width` wide together.

    The backward pass holds four products of that size for the forward pass's two, and a kernel that keeps no scores
    (flash, memory-efficient) recomputes QKᵀ as a fifth.
    """
    forward = 4.0 * queries * keys * width
    return Cost(forward, (2.5 if recomputes else 2.0) * forward)


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(
    kind: str, steps: int, inputs: int, hidden: int, *, layers: int, directions: int = 1, batch: int = 1
) -> Cost:
    """A stack of recurrent layers of which every input and first state gets its gradient.

    Fused kernels (oneDNN, cuDNN) compute all of these whether they are needed or not.
    """
    gates = GATES[kind] * hidden
    widths = [inputs] + [directions * hidden] * (layers - 1)
    return total(product(batch * steps, width + hidden, gates) * directions for width in widths)


def unfused_recurrent(
    kind: str, steps: int, inputs: int, hidden: int, *, layers: int, directions: int = 1, batch: int = 1
) -> Cost:
    """The same where autograd sees every step, and neither the input nor the first states need a gradient."""
    gates = GATES[kind] * hidden
    every = recurrent(kind, steps, inputs, hidden, layers=layers, directions=directions, batch=batch)
    input_gradient = product(batch * steps, inputs, gates).forward * directions
    state_gradients = product(batch, hidden, gates).forward * directions * layers
    return Cost(every.forward, every.backward - input_gradient - state_gradients)


def real_fft(transforms: int, length: int) -> Cost:
    """Fourier transforms of real signals; the backward pass is not used here."""
    return Cost(2.5 * transforms * length * math.log2(length))


def conv_length(length: int, kernel: int, *, stride: int = 1, padding: int = 0) -> int:
    return (length + 2 * padding - kernel) // stride + 1


def transposed_length(length: int, kernel: int, *, stride: int = 1, padding: int = 0) -> int:
    return (length - 1) * stride - 2 * padding + kernel


# Front-ends


def log_mel(samples: int, *, window: int = 400, hop: int = 160, bands: int = 80) -> Cost:
    """A spectrum of centred windows and its projection on mel bands."""
    frames = samples // hop + 1
    return real_fft(frames, window) + product(frames, window // 2 + 1, bands)


def wave_features(config: Any, samples: int) -> tuple[Cost, int]:
    """The strided convolutions over the waveform that wav2vec2 and its kin share, and the frames they leave."""
    cost, length, inputs = Cost(), samples, 1
    for outputs, kernel, stride in zip(config.conv_dim, config.conv_kernel, config.conv_stride, strict=True):
        length = conv_length(length, kernel, stride=stride)
        cost += conv(length, inputs, outputs, kernel, first=inputs == 1)
        inputs = outputs
    return cost + linear(length, inputs, config.hidden_size), length


# Transformers


def feed_forward(frames: int, width: int, inner: int) -> Cost:
    return linear(frames, width, inner) + linear(frames, inner, width)


def self_attention(frames: int, width: int, *, recomputes: bool = False) -> Cost:
    """Four projections around the two products."""
    return linear(frames, width, width) * 4 + attention(frames, frames, width, recomputes=recomputes)


def wav2vec2(config: Any, samples: int) -> Cost:
    """wav2vec2, HuBERT: the position convolution's even kernel yields one frame too many, which is computed."""
    features, frames = wave_features(config, samples)
    kernel, groups = config.num_conv_pos_embeddings, config.num_conv_pos_embedding_groups
    padded = conv_length(frames, kernel, padding=kernel // 2)
    positions = conv(padded, config.hidden_size, config.hidden_size, kernel, groups=groups)
    return features + positions + transformer(config, frames)


def transformer(config: Any, frames: int) -> Cost:
    width = config.hidden_size
    layer = self_attention(frames, width) + feed_forward(frames, width, config.intermediate_size)
    return layer * config.num_hidden_layers


def wavlm(config: Any, samples: int) -> Cost:
    """wav2vec2 plus, in each layer, the gate of the position bias: every head of every frame → 8."""
    _, frames = wave_features(config, samples)
    heads = config.num_attention_heads
    gate = linear(frames * heads, config.hidden_size // heads, 8)
    return wav2vec2(config, samples) + gate * config.num_hidden_layers


def data2vec(config: Any, samples: int) -> Cost:
    """wav2vec2 with a stack of position convolutions, whose odd kernels keep the length."""
    features, frames = wave_features(config, samples)
    kernel, groups = config.conv_pos_kernel_size, config.num_conv_pos_embedding_groups
    length, positions = frames, Cost()
    for _ in range(config.num_conv_pos_embeddings):
        padded = conv_length(length, kernel, padding=kernel // 2)
        positions += conv(padded, config.hidden_size, config.hidden_size, kernel, groups=groups)
        length = padded - (kernel % 2 == 0)
    return features + positions + transformer(config, frames)


def masked_acoustic(frames: int, *, layers: int, longest: int, bands: int = 80, width: int = 768) -> Cost:
    """Mockingjay, TERA: long inputs are cut into equal pieces, the last perhaps shorter, that attend to themselves."""
    whole = math.ceil(frames / math.ceil(frames / longest))
    pieces = [min(whole, frames - start) for start in range(0, frames, whole)]
    layer = total(self_attention(piece, width) + feed_forward(piece, width, 4 * width) for piece in pieces)
    return linear(frames, bands, width, first=True) + layer * layers


# Predictive coding


def apc(frames: int, *, bands: int = 80, width: int = 512, layers: int = 3) -> Cost:
    """Gated recurrent units, and the projection back to a frame."""
    return recurrent("GRU", frames, bands, width, layers=layers) + linear(frames, width, bands)


def cpc(samples: int, *, width: int = 256) -> Cost:
    """Five strided convolutions, whose padding is computed as if it were signal, and an LSTM."""
    cost, length, inputs = Cost(), samples, 1
    for kernel, stride, padding in ((10, 5, 3), (8, 4, 2), (4, 2, 1), (4, 2, 1), (4, 2, 1)):
        length = conv_length(length, kernel, stride=stride, padding=padding)
        cost += conv(length, inputs, width, kernel, first=inputs == 1)
        inputs = width
    return cost + recurrent("LSTM", length, width, width, layers=1)


# Conformers


def conformer_layer(
    frames: int, width: int, inner: int, kernel: int, *, relative: bool, recomputes: bool = False
) -> Cost:
    """Feed-forward, attention, convolution, feed-forward."""
    pointwise = conv(frames, width, 2 * width, 1) + conv(frames, width, width, 1)
    depthwise = conv(frames, width, width, kernel, groups=width)
    attending = self_attention(frames, width, recomputes=recomputes)
    positions = relative_positions(frames, width) if relative else Cost()
    return feed_forward(frames, width, inner) * 2 + attending + positions + pointwise + depthwise


def relative_positions(frames: int, width: int) -> Cost:
    """Project the 2T − 1 distances (constants: no gradient), and multiply every query with all of them."""
    distances = 2 * frames - 1
    return linear(distances, width, width, first=True) + product(frames, width, distances)


def wav2vec2_conformer(config: Any, samples: int, *, recomputes: bool = False) -> Cost:
    """The convolution over positions has parameters in this model, and is never called."""
    features, frames = wave_features(config, samples)
    layer = conformer_layer(
        frames,
        config.hidden_size,
        config.intermediate_size,
        config.conv_depthwise_kernel_size,
        relative=config.position_embeddings_type == "relative",
        recomputes=recomputes,
    )
    return features + layer * config.num_hidden_layers


def parakeet(config: Any, frames: int, *, recomputes: bool = False) -> Cost:
    """Subsampling in two dimensions, then Conformer layers with relative positions."""
    subsampling, length = parakeet_subsampling(config, frames)
    layer = conformer_layer(
        length,
        config.hidden_size,
        config.intermediate_size,
        config.conv_kernel_size,
        relative=True,
        recomputes=recomputes,
    )
    return subsampling + layer * config.num_hidden_layers


def parakeet_subsampling(config: Any, frames: int) -> tuple[Cost, int]:
    """A full convolution, then depthwise and pointwise ones, each halving frames and bands; the rest is projected."""
    channels, kernel, stride = (
        config.subsampling_conv_channels,
        config.subsampling_conv_kernel_size,
        config.subsampling_conv_stride,
    )
    cost, length, bands = Cost(), frames, config.num_mel_bins
    for number in range(int(math.log2(config.subsampling_factor))):
        length, bands = (conv_length(n, kernel, stride=stride, padding=(kernel - 1) // 2) for n in (length, bands))
        if number == 0:
            cost += conv(length * bands, 1, channels, kernel**2, first=True)
        else:
            cost += conv(length * bands, channels, channels, kernel**2, groups=channels)
            cost += conv(length * bands, channels, channels, 1)
    return cost + linear(length, channels * bands, config.hidden_size), length


def conformer_ctc(frames: int, vocabulary: int, *, layers: int = 12, width: int = 256, bands: int = 80) -> Cost:
    """Two full convolutions in two dimensions, each halving frames and bands; layers; a projection to the tokens."""
    cost, inputs = Cost(), 1
    for _ in range(2):
        frames, bands = conv_length(frames, 3, stride=2), conv_length(bands, 3, stride=2)
        cost += conv(frames * bands, inputs, width, 9, first=inputs == 1)
        inputs = width
    layer = conformer_layer(frames, width, 1024, 31, relative=True)
    return cost + linear(frames, width * bands, width) + layer * layers + linear(frames, width, vocabulary)


# Whisper


def whisper_encoder(config: Any) -> Cost:
    """Two convolutions, of which the second halves the frames, and the layers."""
    width, frames = config.d_model, config.max_source_positions
    convolutions = conv(2 * frames, config.num_mel_bins, width, 3, first=True) + conv(frames, width, width, 3)
    layer = self_attention(frames, width) + feed_forward(frames, width, config.encoder_ffn_dim)
    return convolutions + layer * config.encoder_layers


def whisper_generate(config: Any, *, prompt: int, tokens: int) -> Cost:
    """One encoder pass; a decoder pass over the prompt, which yields the first token; one more for each other token.

    The last token is never fed back. Cross-attention's keys and values are computed in the first pass and kept.
    """
    passes = [(prompt, prompt)] + [(1, prompt + step) for step in range(1, tokens)]
    decoding = total(whisper_decoder_pass(config, new, seen) for new, seen in passes)
    cross_states = linear(config.max_source_positions, config.d_model, config.d_model) * 2 * config.decoder_layers
    return whisper_encoder(config) + cross_states + decoding


def whisper_decoder_pass(config: Any, new: int, seen: int) -> Cost:
    """Some new tokens (of so many seen, these included) through the layers and, each of them, to the vocabulary."""
    width = config.d_model
    own = linear(new, width, width) * 4 + attention(new, seen, width)
    cross = linear(new, width, width) * 2 + attention(new, config.max_source_positions, width)
    layer = own + cross + feed_forward(new, width, config.decoder_ffn_dim)
    return layer * config.decoder_layers + linear(new, width, config.vocab_size)
