"""Every head of transformers through the command, with models as small as they go and random weights."""

import json

import pytest
import soundfile
import yaml
from tiny_models import SMALL, entry

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

QUICK = {"warmup": 0, "samples": 1, "min_samples": 1, "rounds": 1, "meters": ["latency"], "threads": 1}


@pytest.fixture
def run(cli, workshop):
    """`run(plan)` in one process; the records by the model's name, each measurement by metric and scope."""

    def call(*args, **plan):
        (workshop / "plan.yaml").write_text(yaml.safe_dump({**QUICK, **plan}))
        done = cli("run", "plan.yaml", "-o", "run", *(args or ("--launcher", "inline")))
        assert done.returncode == 0, done.stderr
        found = {}
        for line in (workshop / "run/records.jsonl").read_text().splitlines():
            record = json.loads(line)
            assert record["status"] == "ok", (record["case"]["subject"]["name"], record["reason"])
            told = [(m["metric"], m["scope"]) for m in record["measurements"] if m["metric"] == "tokens.v1"]
            assert len(told) == len(set(told)), "tokens are told once"
            found.setdefault(record["case"]["subject"]["name"], []).append(
                {(m["metric"], m["scope"]): m for m in record["measurements"]}
            )
        return found

    return call


def made(record, metric, scope="total"):
    measurement = record.get((metric, scope))
    return measurement and measurement["values"]


def notes(record):
    return record["items.v1", "total"]["notes"]["notes"]


def sounds(workshop):
    return sorted((workshop / "run/artifacts").rglob("*.flac"))


def test_heads_that_hear(run, workshop):
    found = run(
        models=[
            entry("wav2vec2-bert"),
            entry("wav2vec2-bert", head="ctc"),
            entry("hubert", head="units", clusters=50),
            entry("speech_to_text", head="st"),
            entry("parakeet_ctc"),
            entry("parakeet_rnnt"),
            entry("parakeet_tdt"),
            entry("speecht5", head="s2st", vocoder="random"),
            entry("seamless_m4t", head="s2st"),
            entry("encodec"),
            entry("dac"),
            entry("mimi"),
        ],
        audio="sample",
        seconds=1,
        max_new_tokens=5,
        save_speech=True,
    )
    for name in ("speech_to_text-st", "parakeet_rnnt-natural", "parakeet_tdt-natural"):
        (record,) = found[name]
        assert made(record, "tokens.v1") == [5.0]
        assert "output length fixed at 5 tokens" in notes(record)
    assert made(found["hubert-units"][0], "tokens.v1") == [49.0]
    assert made(found["seamless_m4t-s2st"][0], "tokens.v1") == [5.0 + 8 * 5.0]
    assert all(notes(record)[0].startswith("random weights") for (record,) in found.values())
    for name in ("encodec-natural", "dac-natural", "mimi-natural"):
        assert made(found[name][0], "audio_made_seconds.v1") == [1.0]
    assert 0.9 < made(found["speecht5-s2st"][0], "audio_made_seconds.v1")[0] < 1.1
    rates = {soundfile.info(path).samplerate for path in sounds(workshop)}
    assert len(sounds(workshop)) == 5
    assert rates == {16_000, 24_000}


def test_heads_that_read(run, workshop):
    found = run(
        models=[
            entry("marian"),
            entry("m2m_100"),
            entry("t5"),
            entry("seamless_m4t", head="mt"),
            entry("speecht5", vocoder="random"),
            entry("vits"),
            entry("fastspeech2_conformer_with_hifigan"),
            entry("seamless_m4t_v2", head="tts"),
            entry("seamless_m4t", head="vocoder"),
            entry("mimi", head="vocoder"),
        ],
        text={"vocabulary": 1000, "count": 2},
        length=12,
        batch=2,
        beam=[1, 3],
        min_new_tokens=7,
        save_speech=True,
    )
    for name in ("marian-natural", "m2m_100-natural", "t5-natural", "seamless_m4t-mt", "seamless_m4t_v2-tts"):
        assert [made(record, "tokens.v1") for record in found[name]] == [[14.0], [14.0]]  # greedy and with beams
    speaks = ("speecht5", "vits", "fastspeech2_conformer_with_hifigan")
    frames = {name: made(found[f"{name}-natural"][0], "audio_made_seconds.v1")[0] for name in speaks}
    assert frames["speecht5"] == pytest.approx(2 * 12 * 4 * 256 / 16_000)
    assert frames["vits"] == pytest.approx(2 * 12 * 4 * 16 / 16_000)
    assert frames["fastspeech2_conformer_with_hifigan"] == pytest.approx(2 * 12 * 6 * 16 / 22_050)
    assert "speech length fixed at 4 frames per source symbol" in notes(found["speecht5-natural"][0])
    assert len(sounds(workshop)) == 6 * 2 * 2


def test_spectrograms_become_sound(run):
    found = run(
        models=[entry("speecht5_hifigan"), entry("univnet")],
        features={"bands": 20, "frames": [40, 40], "count": 1},
    )
    assert made(found["speecht5_hifigan-natural"][0], "audio_made_seconds.v1") == [40 * 16 / 16_000]
    assert made(found["univnet-natural"][0], "audio_made_seconds.v1") == [40 * 256 / 24_000]


def test_int8_takes_fewer_bytes_for_the_same_parameters(run):
    found = run(
        models=[entry("wav2vec2", head="ctc")],
        seconds=1,
        quantize=["none", "int8-dynamic"],
        meters=["latency", "parameters", "flops"],
    )
    plain, int8 = found["wav2vec2-ctc"]
    assert made(plain, "parameters.v1") == made(int8, "parameters.v1")
    assert made(int8, "parameter_bytes.v1")[0] < 0.8 * made(plain, "parameter_bytes.v1")[0]
    assert made(int8, "parameter_bytes.v1", "dtype:int8")[0] > 0
    assert made(plain, "flops.v1") == made(int8, "flops.v1")


def test_a_saved_synthesiser_with_a_saved_vocoder(run, workshop):
    from transformers import SpeechT5Config, SpeechT5ForTextToSpeech, SpeechT5HifiGan, SpeechT5HifiGanConfig

    SpeechT5ForTextToSpeech(SpeechT5Config(**SMALL["speecht5"])).save_pretrained(workshop / "voice")
    SpeechT5HifiGan(SpeechT5HifiGanConfig(**SMALL["speecht5_hifigan"])).save_pretrained(workshop / "gan")
    config = json.loads((workshop / "gan/config.json").read_text())
    (workshop / "gan/config.json").write_text(json.dumps({**config, "model_type": "hifigan"}))  # as released
    found = run(models=[{"load": "transformers:voice", "vocoder": "gan"}], text={"count": 1}, length=3, max_len_a=2.0)
    (record,) = found["voice"]
    assert made(record, "audio_made_seconds.v1")[0] > 0
    assert not any(note.startswith("random weights") for note in notes(record))
    stages = {scope for metric, scope in record if metric == "latency.v1"}
    assert {"stage:features", "stage:model", "stage:vocoder", "stage:decode"} < stages


def test_a_cascade_of_three(run, workshop):
    found = run(
        cascades=[
            {
                "name": "s2st",
                "stages": [
                    {**entry("speech_to_text"), "name": "asr", "max_len_a": 0.2, "max_len_b": 1},
                    {**entry("marian"), "name": "mt", "beam": 2, "max_new_tokens": 6},
                    {**entry("speecht5", vocoder="random", head="tts"), "name": "tts"},
                ],
            }
        ],
        audio="sample",
        workload={"name": "audio", "count": 2, "shortest": 0.5, "longest": 1.5},
        boundary="model",
        meters=["latency", "flops", "parameters"],
        save_speech=True,
    )
    (record,) = found["s2st"]
    clocked = {s: m["notes"]["clocked"] for (metric, s), m in record.items() if metric == "latency.v1" and s != "total"}
    assert [scope for scope, inside in clocked.items() if inside] == [
        "stage:asr.model",
        "stage:mt.model",
        "stage:tts.model",
        "stage:tts.vocoder",
    ]
    assert clocked["stage:asr→mt"] is False
    assert clocked["stage:mt→tts"] is False
    heard = made(record, "audio_seconds.v1")
    frames = [round(seconds * 100 / 4) for seconds in heard]  # two convolutions of stride 2 over frames of 10 ms
    for tokens, count in zip(made(record, "tokens.v1", "stage:asr.model"), frames, strict=True):
        assert abs(tokens - (0.2 * count + 1)) <= 1
    assert made(record, "tokens.v1", "stage:mt.model") == [6.0, 6.0]
    assert made(record, "audio_made_seconds.v1") == [pytest.approx(6 * 4 * 256 / 16_000)] * 2
    assert [soundfile.info(path).frames for path in sounds(workshop)] == [6 * 4 * 256] * 2
    by_stage = [made(record, "flops.v1", f"stage:{stage}") for stage in ("asr.model", "mt.model", "tts.model")]
    assert all(flops and flops[0] > 0 for flops in by_stage)
    assert {"module:asr", "module:mt"} < {scope for metric, scope in record if metric == "parameters.v1"}


def test_a_saved_translator_reads_and_writes_with_its_tokenizer(run, workshop):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    words = {word: number for number, word in enumerate(["<pad>", "</s>", "<unk>", "boat", "sea", "harbour"])}
    plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )
    tokenizer.save_pretrained(workshop / "translator")
    config = T5Config(**{**SMALL["t5"], "vocab_size": len(words)}, decoder_start_token_id=0)
    T5ForConditionalGeneration(config).save_pretrained(workshop / "translator")
    (workshop / "lines.txt").write_text("boat sea harbour\nsea\n")
    found = run(
        models=[{"load": "transformers:translator", "generate": {"suppress_tokens": [0, 1, 2]}}],
        text={"lines": "lines.txt"},
        batch=2,
        beam=2,
        max_new_tokens=4,
    )
    (record,) = found["translator"]
    assert made(record, "tokens.v1") == [2 * 4.0]
    assert "notes" not in record["items.v1", "total"].get("notes", {})
    (written,) = (workshop / "run/artifacts").rglob("text.tsv")
    lines = [line.split("\t") for line in written.read_text().splitlines()]
    assert [name for name, _ in lines] == ["text-0", "text-1"]
    assert all(len(text.split()) == 4 and set(text.split()) <= {"boat", "sea", "harbour"} for _, text in lines)
