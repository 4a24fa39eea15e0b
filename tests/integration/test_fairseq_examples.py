"""The configuration files of examples/seeds/fairseq-s2st, each run at a small size."""

from dataclasses import replace
from pathlib import Path

import pytest
import soundfile
from tiny_models import SMALL

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from speechmeter.core import plugins
from speechmeter.core.outputs import Keep
from speechmeter.core.protocols import ORDINARY
from speechmeter.engine.measure import measure
from speechmeter.launch.preflight import preflight
from speechmeter.plan.source import from_set
from speechmeter.plan.study import study_from_file

EXAMPLES = Path(__file__).parents[2] / "examples/seeds/fairseq-s2st"
UNITS = {"seamless_m4t": ("unit_hifi_gan_vocab_size",), "speech_to_text": ("vocab_size", "max_target_positions")}


def small(case):
    """The same chain with models as small as they go; how many units there are is as the file says."""
    stages = []
    for stage in case.subject.options["stages"]:
        kind = stage["load"].partition(":")[2]
        kept = {key: stage["config"][key] for key in UNITS.get(kind, ()) if key in stage.get("config", {})}
        stages.append({**stage, "config": {**SMALL[kind], **kept}})
    return replace(case, subject=replace(case.subject, options={"stages": stages}))


@pytest.mark.parametrize(
    ("name", "models", "tokens"),
    [
        ("DirectS2U", ("s2u", "vocoder"), {"s2u": [8.0, 8.0]}),
        ("2StageS2ST", ("s2t", "tts"), {"s2t": [6.0, 6.0]}),
        # 40 and 60 frames are 10 and 15 of the encoder: 0.2 × those + 2
        ("3StageS2ST", ("s2t", "mt", "tts"), {"s2t": [4.0, 5.0], "mt": [6.0, 6.0]}),
    ],
)
def test_an_example_runs_to_the_end(tmp_path, name, models, tokens):
    study = study_from_file(EXAMPLES / f"{name}.yaml", [from_set("threads=1")])
    assert preflight(study.cells.cases) == []
    case = small(study.cells.cases[0])
    meters = [plugins.meter(meter) for meter in ("latency", "flops")]
    keep = Keep(folder=tmp_path, speech=study.plan.speech_files())
    outcome = measure(case, plugins.subject("cascade"), plugins.workload("data"), meters, ways=ORDINARY, keep=keep)
    assert outcome.status == "ok", outcome.reason
    found = {(m.metric, m.scope): m for m in outcome.measurements}
    clocked = [scope for (metric, scope), m in found.items() if metric == "latency.v1" and m.notes.get("clocked")]
    assert {scope.removeprefix("stage:").partition(".")[0] for scope in clocked} == set(models)
    assert len(found["latency.v1", "total"].values) == 2
    assert len(found["flops.v1", "total"].values) == 2
    for role, made in tokens.items():
        assert list(found["tokens.v1", f"stage:{role}.model"].values) == made
    notes = found["items.v1", "total"].notes["notes"]
    assert sum("stand-in for" in note for note in notes) == len(models)
    sounds = sorted(tmp_path.rglob("*.flac"))
    if name == "DirectS2U":
        assert [path.name for path in sounds] == ["direct_example-0.flac", "direct_example-1.flac"]
        assert {soundfile.info(path).samplerate for path in sounds} == {24_000}
    else:
        assert sounds == []
