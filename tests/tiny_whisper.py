"""A random Whisper of a few thousand weights with a tokenizer of letters, saved as transformers saves one."""

from pathlib import Path

WORDS = [chr(ord("a") + index) for index in range(26)]
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>",
           "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]  # fmt: skip
END, START = len(WORDS), len(WORDS) + 1
_TIMESTAMPS = 1501


def save(folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    vocabulary = {word: index for index, word in enumerate([*WORDS, *SPECIAL])}
    letters = Tokenizer(models.WordLevel(vocabulary, unk_token="a"))
    letters.add_special_tokens(SPECIAL)
    model = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=len(vocabulary) + _TIMESTAMPS, d_model=32, encoder_layers=1, decoder_layers=2,
            encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
            pad_token_id=END, bos_token_id=END, eos_token_id=END, decoder_start_token_id=START,
        )
    )  # fmt: skip
    model.generation_config.suppress_tokens = []
    model.generation_config.begin_suppress_tokens = [END]
    model.generation_config.lang_to_id = {"<|en|>": vocabulary["<|en|>"]}
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="<|endoftext|>").save_pretrained(folder)


def convert(folder: Path, into: Path) -> None:
    from ctranslate2.converters import TransformersConverter

    save(folder)
    TransformersConverter(str(folder), copy_files=["tokenizer.json"]).convert(str(into))
