"""A model that is fed what it does not take is refused before anything runs."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import make_case

from speechmeter.core import plugins, protocols
from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Spec
from speechmeter.launch.preflight import preflight

KINDS = {protocols.SOUND, protocols.FEATURES, protocols.TEXT, protocols.SHAPES}
MATCHES = [
    ("log-mel", "audio", True),
    ("log-mel", "data", True),
    ("log-mel", "shapes", False),
    ("moonshine-voice", "shapes", False),
    ("pocketsphinx", "text", False),
    ("speechbrain", "text", False),
    ("onnx", "features", False),
    ("transformers", "features", True),
    ("transformers", "text", True),
    ("transformers", "shapes", False),
    ("transducer-loss", "shapes", True),
    ("transducer-loss", "audio", False),
    ("python", "shapes", True),
]


def case_of(subject, workload, **options):
    return make_case(
        subject=Spec(plugin=subject, name=subject, source="", options=options),
        workload=Spec(plugin=workload, name=workload, source="noise"),
    )


@pytest.mark.parametrize(("subject", "workload", "fits"), MATCHES)
def test_what_is_fed_must_be_what_is_taken(subject, workload, fits):
    case = case_of(subject, workload)
    if fits:
        plugins.check_input(case)
        return
    with pytest.raises(SubjectError, match=rf"{subject} takes .*`{workload}:` feeds"):
        plugins.check_input(case)


def test_a_list_of_features_is_known_as_such_before_anything_runs(tmp_path):
    items = np.empty(2, dtype=object)
    items[:] = [{"id": i, "net_input": {"src_tokens": np.ones((1, 9, 40), np.float32)}} for i in range(2)]
    np.save(tmp_path / "list.npy", items, allow_pickle=True)
    options = {"manifest": str(tmp_path / "list.npy")}
    case = replace(case_of("log-mel", "data"), workload=Spec(plugin="data", name="list", options=options))
    assert plugins.fed_by(case) == protocols.Fed(kinds=(protocols.FEATURES,), bands=40)
    with pytest.raises(SubjectError, match="log-mel takes sound, and `data:` feeds features"):
        plugins.check_input(case)


def test_preflight_refuses_it_with_the_way_out():
    with pytest.raises(SubjectError, match="log-mel takes sound, and `shapes:` feeds shapes; name it with `audio:`"):
        preflight([case_of("log-mel", "shapes")])


def test_the_first_stage_of_a_cascade_answers_for_all():
    stages = [{"name": "hear", "load": "log-mel"}, {"name": "again", "load": "log-mel"}]
    with pytest.raises(SubjectError, match="stage hear: hear takes sound"):
        plugins.subject("cascade").check(case_of("cascade", "text", stages=stages))
    plugins.subject("cascade").check(case_of("cascade", "audio", stages=stages))


def test_every_built_in_declares_known_words():
    for name in plugins.names(plugins.SUBJECTS):
        assert set(plugins.subject(name).takes) <= KINDS
