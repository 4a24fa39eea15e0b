"""The benchmark of the client holds as many streams at once as it says."""

import importlib.util
import sys
from pathlib import Path

import pytest
from live_rounds import known, utterance

from speechmeter.engine.live.round import Part

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "client.py"


@pytest.fixture(scope="module")
def client():
    spec = importlib.util.spec_from_file_location("client", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["client"] = module  # its data classes look their own module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["client"]


def test_all_streams_of_a_level_are_fed_at_the_same_time_by_one_client_or_two(client):
    live = known([utterance()])
    of_one = client.fed(live, 20, 2.0, 0.1, Part(index=0, of=1, begin=lambda: 0.0))[1]
    of_two = [client.fed(live, 20, 2.0, 0.1, Part(index=n, of=2, begin=lambda: 0.0))[1] for n in range(2)]
    for exchanges in (of_one, [one for part in of_two for one in part]):
        assert len(exchanges) == 20 and not any(one.error for one in exchanges)
        starts = [one.started_s for one in exchanges]
        assert len(set(starts)) == 20 and max(starts) - min(starts) < 0.1
        assert client.together_s(exchanges) == pytest.approx(2.0 - (max(starts) - min(starts)))


def test_a_level_with_a_stream_that_was_not_fed_is_not_held(client):
    level = {"streams": 2, "late_s": [0.0], "busy": 0.1, "failed": 0, "warned": False, "seconds": 6.0}
    assert client.Level(**level, together_s=5.9).word == "ok"
    assert client.Level(**level, together_s=3.0).word == "not together"
    assert client.Level(**{**level, "failed": 1}, together_s=0.0).word == "1 failed"
