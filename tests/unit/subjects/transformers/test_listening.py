"""Features that are fed past a model's front-end: the model hears what it would hear if it were called with them."""

import numpy as np
import pytest
from conftest import make_case
from tiny_models import SMALL

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")

from speechmeter.core.errors import SubjectError  # noqa: E402
from speechmeter.core.stages import run_chain  # noqa: E402
from speechmeter.core.types import Batch, Spec  # noqa: E402
from speechmeter.subjects.transformers import TransformersSubject  # noqa: E402
from speechmeter.workloads.features import FeatureWorkload  # noqa: E402

FED = Spec(plugin="features", name="features", options={"count": 2, "frames": [40, 90], "bands": 80})
AXES = {"batch": 2, "max_new_tokens": 5, "boundary": "model"}


def case_of(kind, workload=FED, **options):
    subject = Spec(plugin="transformers", name=kind, source=kind, options={"config": SMALL[kind], **options})
    return make_case(subject=subject, workload=workload, **AXES)


def fed(kind, **options):
    """(what the chain makes of synthetic features, its model, the features, which of their frames are true)."""
    case = case_of(kind, **options)
    prepared = TransformersSubject().prepare(case, "cpu")
    (batch,) = FeatureWorkload().batches(case)
    assert batch.lengths[0] != batch.lengths[1]
    assert "fed features: the model's own front-end does not run" in prepared.notes
    mask = torch.zeros(batch.data.shape[:2], dtype=torch.long)
    for row, length in enumerate(batch.lengths):
        mask[row, :length] = 1
    outputs = dict(zip([stage.name for stage in prepared.stages], run_chain(prepared.stages, batch), strict=True))
    return outputs, prepared.modules["model"], torch.from_numpy(batch.data), mask


def test_a_recogniser_writes_what_it_writes_when_it_is_called_with_the_features():
    outputs, model, data, mask = fed("speech_to_text")
    direct = model.generate(
        input_features=data, attention_mask=mask, do_sample=False, num_beams=1, min_new_tokens=5, max_new_tokens=5
    )
    assert outputs["decode"] == direct[:, 1:].tolist()


@torch.inference_mode()
def test_scores_are_those_of_the_model_called_with_the_features():
    outputs, model, data, mask = fed("parakeet_ctc")
    assert torch.equal(outputs["model"], model(input_features=data, attention_mask=mask).logits)


@torch.inference_mode()
def test_frames_are_paired_where_the_model_hears_pairs():
    outputs, model, data, mask = fed("wav2vec2-bert", head="ctc")
    pairs = data.shape[1] // 2
    paired = torch.cat([data[:, 0 : 2 * pairs : 2], data[:, 1 : 2 * pairs : 2]], dim=-1)
    made = model(input_features=paired, attention_mask=mask[:, 1 : 2 * pairs : 2]).logits
    assert torch.equal(outputs["model"], made)


def test_what_the_model_cannot_take_is_said_when_it_was_not_known_before():
    hears = TransformersSubject().prepare(case_of("speech_to_text"), "cpu").stages[0].fn
    with pytest.raises(SubjectError, match="takes features of 80 bands, but its input has 7"):
        hears(Batch(data=np.zeros((1, 9, 7), np.float32), items=1, lengths=(9,)))
    with pytest.raises(SubjectError, match="hears sound, and what it is fed is text"):
        hears(Batch(data=("a line",), items=1, lengths=(2,)))
