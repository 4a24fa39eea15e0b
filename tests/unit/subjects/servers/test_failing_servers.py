"""Every way in which a server fails becomes a row of a run, with its kind and a reason, and nothing hangs."""

import asyncio

import pytest
from live_servers import answered, http, tcp

from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.core import metrics
from speechmeter.plan.study import study_from_python

GOOD = answered(b'{"text": "one"}')


@pytest.fixture(autouse=True)
def _asked_shortly(monkeypatch):
    """A server is asked for its version before, which is not what is tested here."""
    for name in ("_ASKING_S", "_MOST_ASKING_S"):
        monkeypatch.setattr(f"speechmeter.subjects.servers.process.{name}", 0.05)


def writes(data):
    async def answer(head, body, writer):
        writer.write(data)

    return answer


async def mute(head, body, writer):
    await asyncio.sleep(20)


async def slow_headers(head, body, writer):
    for place in range(len(GOOD)):
        writer.write(GOOD[place : place + 1])
        await writer.drain()
        await asyncio.sleep(0.05)


def dying(after=1):
    left = [after]

    async def answer(head, body, writer):
        if left[0] and head.startswith("POST"):  # a server is also asked for its version
            left[0] -= 1
            writer.write(GOOD)
        else:
            writer.transport.abort()

    return answer


def row(folder, url, timeout="60s"):
    """The record of a round of three requests, and the kind of error of each."""
    plan = {
        "models": [{"name": "server", "load": f"openai-transcriptions:{url}"}], "audio": "sample", "seconds": 0.2,
        "pace": "fast", "chunk": "200ms", "silence": 0, "turns": 3, "warmup_turns": 0, "answer_timeout": timeout,
        "meters": [], "rounds": 1,
    }  # fmt: skip
    made = run_study(study_from_python(plan), Options(output=folder, launcher="inline"))
    (record,) = made.records
    answers = record.find(metrics.LIVE_ANSWERED.id)
    assert answers is not None, record.reason
    assert len(answers.values) == 3
    return record, list(answers.notes["errors"])


@pytest.mark.parametrize(
    ("answer", "kinds", "reason"),
    [
        (writes(answered(b"wrong key", status="401 Unauthorized")), ["http-4xx"] * 3, "status 401: 'wrong key'"),
        (writes(answered(b"busy", status="503 Unavailable")), ["http-5xx"] * 3, "status 503: 'busy'"),
        (mute, ["timeout"] * 3, ""),  # too slow is measured: the row is no error, and nothing is complete
        (slow_headers, ["timeout"] * 3, ""),
        (writes(GOOD[:-4]), ["connection"] * 3, "before its answer was complete"),
        (writes(b"\x00\x01 noise\r\n\r\n"), ["garbage"] * 3, "does not speak HTTP"),
        (dying(), ["", "connection", "connection"], ""),
    ],
    ids=["4xx", "5xx", "timeout", "slow headers", "cut", "garbage", "dies"],
)
def test_every_failure_of_a_server_is_a_row(answer, kinds, reason, tmp_path):
    with http(answer) as url:
        record, errors = row(tmp_path / "run", url, "0.2s" if "timeout" in kinds else "60s")
    assert errors == kinds
    assert record.status == ("error" if reason else "ok") and reason in record.reason
    missing = [place for place, kind in enumerate(kinds) if kind]
    assert record.find(metrics.REQUEST_LATENCY.id).notes["missing"] == missing
    assert list(record.find(metrics.LIVE_COMPLETENESS.id).values) == [0.0 if kind else 100.0 for kind in kinds]


def test_a_server_that_is_not_there_is_a_row(tmp_path):
    async def gone(reader, writer):
        return None

    with tcp(gone) as port:
        pass
    record, errors = row(tmp_path / "run", f"http://127.0.0.1:{port}/v1")
    assert errors == ["refused"] * 3 and record.status == "error" and "cannot connect" in record.reason
