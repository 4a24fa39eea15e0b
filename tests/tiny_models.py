"""Configurations of transformers that are as small as they go: every head of it runs in well under a second."""

from typing import Any

_LAYERS = {
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
}
_GAN = {
    "upsample_initial_channel": 32,
    "upsample_rates": [4, 4],
    "upsample_kernel_sizes": [8, 8],
    "resblock_kernel_sizes": [3],
    "resblock_dilation_sizes": [[1, 3]],
}
_CODEBOOK = {"codebook_size": 32, "codebook_dim": 16}
_PARAKEET = {
    "encoder_config": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "subsampling_conv_channels": 8,
    },
    "vocab_size": 40,
}
_FASTSPEECH = {
    "hidden_size": 32,
    "num_mel_bins": 20,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_linear_units": 32,
    "decoder_linear_units": 32,
    "speech_decoder_postnet_units": 16,
    "speech_decoder_postnet_layers": 2,
    "pitch_predictor_channels": 16,
    "energy_predictor_channels": 16,
    "duration_predictor_channels": 16,
}
SMALL: dict[str, dict[str, Any]] = {
    "wav2vec2": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "vocab_size": 40,
        "conv_dim": [32] * 7,
    },
    "wav2vec2-bert": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "vocab_size": 40,
    },
    "speech_to_text": {"d_model": 32, "vocab_size": 60, **_LAYERS},
    "parakeet_ctc": {**_PARAKEET, "pad_token_id": 39},
    "parakeet_rnnt": {**_PARAKEET, "blank_token_id": 39, "decoder_hidden_size": 16, "num_decoder_layers": 1},
    "parakeet_tdt": {**_PARAKEET, "blank_token_id": 39, "decoder_hidden_size": 16, "num_decoder_layers": 1},
    "marian": {
        "d_model": 32,
        "vocab_size": 300,
        "pad_token_id": 299,
        "decoder_start_token_id": 299,
        "eos_token_id": 0,
        **_LAYERS,
    },
    "m2m_100": {"d_model": 32, "vocab_size": 300, **_LAYERS},
    "t5": {"d_model": 32, "d_kv": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 300},
    "speecht5": {
        "hidden_size": 32,
        "conv_dim": [16] * 7,
        "speech_decoder_prenet_units": 16,
        "speech_decoder_postnet_units": 16,
        "speaker_embedding_dim": 8,
        "num_mel_bins": 20,
        **_LAYERS,
    },
    "speecht5_hifigan": {"model_in_dim": 20, **_GAN},
    "vits": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "ffn_dim": 32,
        "flow_size": 32,
        "spectrogram_bins": 33,
        "prior_encoder_num_flows": 1,
        "wavenet_dilation_rate": 1,
        "posterior_encoder_num_wavenet_layers": 1,
        "prior_encoder_num_wavenet_layers": 1,
        "duration_predictor_filter_channels": 16,
        **_GAN,
    },
    "fastspeech2_conformer_with_hifigan": {
        "model_config": _FASTSPEECH,
        "vocoder_config": {"model_in_dim": 20, **_GAN},
    },
    "seamless_m4t": {
        "vocab_size": 60,
        "hidden_size": 32,
        "speech_encoder_layers": 1,
        "speech_encoder_attention_heads": 2,
        "speech_encoder_intermediate_size": 32,
        "t2u_vocab_size": 70,
        **{f"t2u_{name}": value for name, value in _LAYERS.items()},
        "unit_hifi_gan_vocab_size": 66,
        "unit_embed_dim": 16,
        "lang_embed_dim": 8,
        "spkr_embed_dim": 8,
        "vocoder_num_langs": 3,
        "vocoder_num_spkrs": 3,
        **_LAYERS,
        **_GAN,
    },
    "univnet": {"num_mel_bins": 20, "model_hidden_channels": 8},
    "encodec": {"num_filters": 8, "hidden_size": 16, "target_bandwidths": [1.5], "num_lstm_layers": 1, **_CODEBOOK},
    "dac": {"encoder_hidden_size": 8, "decoder_hidden_size": 64, "codebook_size": 32, "n_codebooks": 2},
    "mimi": {
        "num_filters": 8,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "intermediate_size": 32,
        "num_quantizers": 4,
        "vector_quantization_hidden_dimension": 16,
        "upsample_groups": 32,
        **_CODEBOOK,
    },
}
SMALL["hubert"] = SMALL["wav2vec2"]
SMALL["seamless_m4t_v2"] = {
    **SMALL["seamless_m4t"],
    "char_vocab_size": 50,
    "t2u_variance_predictor_embed_dim": 32,
    "t2u_variance_predictor_hidden_dim": 16,
}


def entry(kind: str, **options: Any) -> dict[str, Any]:
    """An entry of `models:`; its name is the kind and the head."""
    return {
        "name": f"{kind}-{options.get('head', 'natural')}",
        "load": f"transformers:{kind}",
        "config": SMALL[kind],
        **options,
    }
