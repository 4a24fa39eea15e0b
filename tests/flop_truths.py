"""Models whose cost is known by formula (see `flop_formulas`): what a counter of operations is held against.

Each truth builds, on a device, a call without arguments that does the work. A call that trains runs in evaluation mode
with gradients: what costs is the same, and models of wav2vec2's kind draw no random masks. Weights are random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import flop_formulas as formulas
import torch
import transformers
from flop_formulas import Cost
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from speechmeter.subjects.zoo.chain import LogMel
from speechmeter.subjects.zoo.conformer import ConformerCtc
from speechmeter.subjects.zoo.recurrent import AutoregressivePredictor, ContrastivePredictor
from speechmeter.subjects.zoo.transformer import WaveEncoder, mockingjay, tera

Call = Callable[[], object]
Build = Callable[[str], Call]
Parts = Callable[[str], tuple[nn.Module, torch.Tensor]]
Module = Callable[[], nn.Module]
Input = Callable[[], torch.Tensor]

RATE = 16_000
FUSED_ATTENTION = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A call and what it costs by formula, in operations (2 × multiply-accumulate).

    `backward` is None where the call has no backward pass, and `backward_cuda` where CUDA's kernels do the same work
    as the CPU's. `parts` builds the model and its argument alone, for counters that take those rather than a call.
    """

    name: str
    build: Build
    parts: Parts
    forward: float
    backward: float | None = None
    backward_cuda: float | None = None
    devices: tuple[str, ...] = ("cpu", "cuda")
    note: str = ""

    def backward_on(self, device: str) -> float | None:
        """What the backward pass costs on that device; None without one."""
        if device.startswith("cuda") and self.backward_cuda is not None:
            return self.backward_cuda
        return self.backward


def forward(name: str, cost: Cost, module: Module, inputs: Input, **fields: Any) -> Truth:
    """The forward pass of a module in inference mode."""
    parts = partial(_place, module, inputs)
    return Truth(name=name, build=partial(_infer, parts), parts=parts, forward=cost.forward, **fields)


def training(name: str, cost: Cost, module: Module, inputs: Input, **fields: Any) -> Truth:
    """The forward pass of a module, the sum of its output, and the backward pass; the input needs no gradient."""
    parts = partial(_place, module, inputs)
    return Truth(
        name=f"{name}, training",
        build=partial(_train, parts),
        parts=parts,
        forward=cost.forward,
        backward=cost.backward,
        **fields,
    )


def _place(module: Module, inputs: Input, device: str) -> tuple[nn.Module, torch.Tensor]:
    return module().eval().to(device), inputs().to(device)


def _infer(parts: Parts, device: str) -> Call:
    model, argument = parts(device)

    @torch.inference_mode()
    def call() -> object:
        return model(argument)

    return call


def _train(parts: Parts, device: str) -> Call:
    model, argument = parts(device)
    for part in model.modules():
        if isinstance(part, nn.RNNBase):
            part.train()  # cuDNN has no backward pass in evaluation mode; these networks have no dropout

    def call() -> object:
        model.zero_grad(set_to_none=True)
        first_tensor(model(argument)).sum().backward()
        return model

    return call


def first_tensor(output: Any) -> torch.Tensor:
    """A model's output, or the first of several."""
    return output if isinstance(output, torch.Tensor) else output[0]


class Pinned(nn.Module):
    """A module whose scaled-dot-product attention may use some kernels only, in both directions."""

    def __init__(self, module: nn.Module, kernels: Sequence[SDPBackend]) -> None:
        super().__init__()
        self.module = module
        self.kernels = list(kernels)

    def forward(self, argument: torch.Tensor) -> Any:
        with sdpa_kernel(self.kernels):
            return self.module(argument)


def _noise(*shape: int) -> Input:
    return partial(torch.randn, *shape)


def _seconds(seconds: float) -> int:
    return int(seconds * RATE)


# Models on the waveform


def _wave_truths() -> list[Truth]:
    wav2vec2 = transformers.Wav2Vec2Config()
    hubert = transformers.HubertConfig()
    wavlm = transformers.WavLMConfig()
    data2vec = transformers.Data2VecAudioConfig()
    return [
        *(
            _wave(f"wav2vec2-base {seconds} s", formulas.wav2vec2, transformers.Wav2Vec2Model, wav2vec2, seconds)
            for seconds in (1, 10)
        ),
        _wave("HuBERT-base 5 s", formulas.wav2vec2, transformers.HubertModel, hubert, 5),
        _wave("WavLM-base 5 s", formulas.wavlm, transformers.WavLMModel, wavlm, 5),
        _wave("Data2Vec-audio-base 5 s", formulas.data2vec, transformers.Data2VecAudioModel, data2vec, 5),
    ]


def _wave(name: str, formula: Callable[[Any, int], Cost], model: Any, config: Any, seconds: float) -> Truth:
    samples = _seconds(seconds)
    return forward(name, formula(config, samples), partial(model, config), _noise(1, samples))


# Whisper


def _whisper_config() -> transformers.WhisperConfig:
    """whisper-tiny, written out: transformers' defaults have changed between versions."""
    return transformers.WhisperConfig(
        d_model=384,
        encoder_layers=4,
        encoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_layers=4,
        decoder_attention_heads=6,
        decoder_ffn_dim=1536,
        vocab_size=51_865,
        num_mel_bins=80,
        max_source_positions=1500,
    )


def _whisper_truths() -> list[Truth]:
    config, tokens = _whisper_config(), 20
    return [
        forward(
            "whisper-tiny encoder 30 s",
            formulas.whisper_encoder(config),
            lambda: transformers.WhisperModel(config).encoder,
            _noise(1, 80, 3000),
        ),
        *(
            forward(
                f"whisper-tiny generate, prompt {prompt}, {tokens} tokens",
                formulas.whisper_generate(config, prompt=prompt, tokens=tokens),
                partial(Generate, config, prompt, tokens),
                _noise(1, 80, 3000),
                note="greedy, with a cache; the encoder runs once, the decoder once a token",
            )
            for prompt in (1, 4)
        ),
    ]


class Generate(nn.Module):
    """A whole `generate`, pinned to a prompt and a number of tokens."""

    def __init__(self, config: transformers.WhisperConfig, prompt: int, tokens: int) -> None:
        super().__init__()
        self.model = transformers.WhisperForConditionalGeneration(config)
        # A configuration made by hand knows no languages: without a prompt, `generate` starts from this token alone.
        self.register_buffer("prompt", torch.full((1, prompt), config.decoder_start_token_id))
        self.model.generation_config.update(
            max_length=None, min_new_tokens=tokens, max_new_tokens=tokens, num_beams=1, do_sample=False
        )

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        """Past the hooks of a module: the loop around a model is no forward pass, and may be steered by its tokens."""
        return self.forward(features)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.model.generate(features, decoder_input_ids=self.prompt)


# Conformers


def _conformer_config(positions: str, attention: str) -> transformers.Wav2Vec2ConformerConfig:
    return transformers.Wav2Vec2ConformerConfig(
        hidden_size=256,
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=1024,
        conv_dim=(256,) * 7,
        position_embeddings_type=positions,
        attn_implementation=attention,
    )


def _conformer_truths() -> list[Truth]:
    rotary, relative = _conformer_config("rotary", "sdpa"), _conformer_config("relative", "eager")
    cost, samples = formulas.wav2vec2_conformer, _seconds(4)
    audio = _noise(1, samples)
    model = transformers.Wav2Vec2ConformerModel

    def fused() -> nn.Module:
        return Pinned(model(rotary), FUSED_ATTENTION)

    return [
        forward("Conformer 12 × 256, rotary, 4 s", cost(rotary, samples), partial(model, rotary), audio),
        forward("Conformer 12 × 256, relative, 4 s", cost(relative, samples), partial(model, relative), audio),
        training(
            "Conformer 12 × 256, rotary, 4 s, fused attention",
            cost(rotary, samples, recomputes=True),
            fused,
            audio,
            note="attention pinned to the kernels that recompute scores: flash on CPU, memory-efficient on CUDA",
        ),
        training(
            "Conformer 12 × 256, relative, 4 s, plain attention",
            cost(relative, samples),
            partial(model, relative),
            audio,
            note="attention written out as products, whatever the device",
        ),
    ]


def _parakeet_truths() -> list[Truth]:
    if not hasattr(transformers, "ParakeetEncoder"):  # came with transformers 4.57
        return []
    config = transformers.ParakeetEncoderConfig(
        hidden_size=256, num_hidden_layers=12, num_attention_heads=4, intermediate_size=1024
    )
    frames = 1000
    name, model, features = (
        "Parakeet 12 × 256, 10 s",
        partial(transformers.ParakeetEncoder, config),
        _noise(1, 1000, 80),
    )
    cost = formulas.parakeet(config, frames)
    fused = formulas.parakeet(config, frames, recomputes=True)
    return [
        forward(name, cost, model, features),
        training(
            name,
            cost,
            model,
            features,
            backward_cuda=fused.backward,
            note="scores take a bias that needs a gradient: only math does that on CPU, memory-efficient on CUDA",
        ),
    ]


# Recurrent layers

BATCH, STEPS, BANDS = 2, 100, 80


def _recurrent_truths() -> list[Truth]:
    return [
        *_recurrence("LSTM", layers=3, directions=2, fused_on_cpu=True),
        *_recurrence("GRU", layers=2, directions=1, fused_on_cpu=False),
        *_recurrence("RNN", layers=2, directions=2, fused_on_cpu=False),
    ]


def _recurrence(kind: str, *, layers: int, directions: int, fused_on_cpu: bool) -> list[Truth]:
    """CUDA fuses every kind (cuDNN), the CPU the LSTM alone (oneDNN); fused kernels compute all the gradients."""
    hidden = 512
    sizes = {"layers": layers, "directions": directions, "batch": BATCH}
    fused = formulas.recurrent(kind, STEPS, BANDS, hidden, **sizes)
    steps = formulas.unfused_recurrent(kind, STEPS, BANDS, hidden, **sizes)
    name = f"{'Bi' if directions == 2 else ''}{kind} {layers} × {hidden}"

    def module() -> nn.Module:
        return getattr(nn, kind)(BANDS, hidden, layers, batch_first=True, bidirectional=directions == 2)

    features = _noise(BATCH, STEPS, BANDS)
    return [
        forward(name, fused, module, features),
        training(name, fused if fused_on_cpu else steps, module, features, backward_cuda=fused.backward),
    ]


# Convolutions


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer of a stack of convolutions."""

    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    transposed: bool = False

    def module(self) -> nn.Module:
        kind = nn.ConvTranspose1d if self.transposed else nn.Conv1d
        return kind(
            self.inputs, self.outputs, self.kernel, stride=self.stride, padding=self.padding, groups=self.groups
        )

    def cost(self, length: int, *, first: bool) -> tuple[Cost, int]:
        """What it costs on so many positions, and the length of its output."""
        measure = formulas.transposed_length if self.transposed else formulas.conv_length
        after = measure(length, self.kernel, stride=self.stride, padding=self.padding)
        formula, positions = (formulas.transposed, length) if self.transposed else (formulas.conv, after)
        cost = formula(positions, self.inputs, self.outputs, self.kernel, groups=self.groups, first=first)
        return cost, after


DEPTHWISE = [
    layer
    for _ in range(4)
    for layer in (
        Layer(inputs=256, outputs=256, kernel=31, padding=15, groups=256),
        Layer(inputs=256, outputs=256, kernel=1),
    )
]
GROUPED = [
    Layer(inputs=80, outputs=256, kernel=3, padding=1),
    Layer(inputs=256, outputs=256, kernel=5, stride=2, padding=2, groups=4),
    Layer(inputs=256, outputs=512, kernel=3, stride=2, groups=8),
]
TRANSPOSED = [
    Layer(inputs=80, outputs=256, kernel=16, stride=8, padding=4, transposed=True),
    Layer(inputs=256, outputs=128, kernel=16, stride=8, padding=4, transposed=True),
    Layer(inputs=128, outputs=64, kernel=4, stride=2, padding=1, groups=4, transposed=True),
]


def _convolution_truths() -> list[Truth]:
    stacks = {
        "depthwise conv1d stack": (DEPTHWISE, 500),
        "grouped conv1d stack": (GROUPED, 1000),
        "ConvTranspose1d stack": (TRANSPOSED, 100),
    }
    return [
        truth
        for name, (layers, length) in stacks.items()
        for truth in (kind(name, *_stack(layers, length)) for kind in (forward, training))
    ]


def _stack(layers: Sequence[Layer], length: int) -> tuple[Cost, Module, Input]:
    cost, positions = Cost(), length
    for number, layer in enumerate(layers):
        more, positions = layer.cost(positions, first=number == 0)
        cost += more * BATCH

    def module() -> nn.Module:
        return nn.Sequential(*(layer.module() for layer in layers))

    return cost, module, _noise(BATCH, layers[0].inputs, length)


# Attention alone


class AttentionBlock(nn.Module):
    """Project to queries, keys and values, attend, project back."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width)
        self.outputs = nn.Linear(width, width)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        parts = self.inputs(states).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*parts)
        return self.outputs(attended.transpose(1, 2).flatten(2))


def _attention_truths() -> list[Truth]:
    width, frames = 256, 400
    kernels = {
        "math": ((SDPBackend.MATH,), "scores kept: the backward pass costs 2 × the products"),
        "flash": (FUSED_ATTENTION, "scores recomputed: 2.5 × the products; memory-efficient on CUDA in float32"),
    }

    def truth(kernel: str) -> Truth:
        backends, note = kernels[kernel]
        products = formulas.attention(frames, frames, width, recomputes=kernel == "flash")
        projections = formulas.linear(frames, width, 3 * width, first=True) + formulas.linear(frames, width, width)
        return training(
            f"attention block, {kernel}",
            projections + products,
            lambda: Pinned(AttentionBlock(width, 4), backends),
            _noise(1, frames, width),
            note=note,
        )

    return [truth(kernel) for kernel in kernels]


# The zoo


def _zoo_truths() -> list[Truth]:
    """Frames: one for every 10 ms and one more. Mockingjay's 601 are two pieces, of 301 and 300."""
    samples, batch = _seconds(1), 1
    mel, long_mel = _noise(batch, 101, BANDS), _noise(batch, 601, BANDS)
    conformer = partial(ConformerCtc, vocabulary=500)
    return [
        forward("Mockingjay 1 s", formulas.masked_acoustic(101, layers=12, longest=500), mockingjay, mel),
        forward("Mockingjay 6 s", formulas.masked_acoustic(601, layers=12, longest=500), mockingjay, long_mel),
        forward("TERA 6 s", formulas.masked_acoustic(601, layers=3, longest=1500), tera, long_mel),
        forward("HuBERT of the zoo 1 s", formulas.wav2vec2(transformers.HubertConfig(), samples), WaveEncoder,
                _noise(batch, samples)),
        forward("APC 1 s", formulas.apc(101), AutoregressivePredictor, mel),
        forward("CPC 1 s", formulas.cpc(samples), ContrastivePredictor, _noise(batch, samples)),
        forward("Conformer CTC 6 s", formulas.conformer_ctc(601, 500), conformer, long_mel),
    ]  # fmt: skip


# The rest


def _other_truths() -> list[Truth]:
    samples = _seconds(30)
    return [
        forward("log-mel 30 s", formulas.log_mel(samples), LogMel, _noise(1, samples)),
        *_quantised_truths(),
    ]


def _quantised_truths() -> list[Truth]:
    if not hasattr(getattr(torch.ao, "quantization", None), "quantize_dynamic"):
        return []
    cost = formulas.linear(BATCH * STEPS, 512, 1024)
    return [
        forward("Linear, int8 dynamic", cost, _quantised_linear, _noise(BATCH, STEPS, 512), devices=("cpu",)),
    ]


def _quantised_linear() -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(512, 1024)), {nn.Linear})


TRUTHS: list[Truth] = [
    *_wave_truths(),
    *_whisper_truths(),
    *_conformer_truths(),
    *_parakeet_truths(),
    *_recurrent_truths(),
    *_convolution_truths(),
    *_attention_truths(),
    *_zoo_truths(),
    *_other_truths(),
]
