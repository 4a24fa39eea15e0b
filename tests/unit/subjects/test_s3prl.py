import pytest
from conftest import make_case

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Spec
from speechmeter.subjects.s3prl import UPSTREAMS, S3prlSubject


def case_of(source, **config):
    return make_case(subject=Spec(plugin="s3prl", name=source, source=source, options={"config": config}))


@pytest.mark.parametrize("name", UPSTREAMS)
def test_every_upstream_is_known(name):
    layers = "[(16,10,5)] + [(16,3,2)] * 4"
    S3prlSubject().check(case_of(name, encoder_layers=2, conv_feature_layers=layers, activation_fn="gelu"))


@pytest.mark.parametrize(
    ("source", "message"),
    [("wavlmm", "did you mean 'wavlm'"), ("mockingjay", "needs torchaudio"), ("", "no s3prl upstream")],
)
def test_other_upstreams_are_refused(source, message):
    with pytest.raises(SubjectError, match=message):
        S3prlSubject().check(case_of(source))


@pytest.mark.parametrize("value", ["__import__('os').abort()", "[x for x in y]", {"a": 1}, ["exit()"], "", None])
def test_a_configuration_cannot_hold_code(value):
    with pytest.raises(SubjectError, match="conv_feature_layers takes"):
        S3prlSubject().check(case_of("wav2vec2", conv_feature_layers=value))


def test_half_precision_and_compiling_are_refused():
    assert "float32" in S3prlSubject().unavailable(make_case(dtype="float16"))
    assert "hooks" in S3prlSubject().unavailable(make_case(compile=True))
    assert S3prlSubject().unavailable(make_case()) is None
