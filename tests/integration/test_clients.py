"""Two client processes that hold the streams of one round against a server, begun together."""

import json

from live_servers import web_socket

from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.core import metrics
from speechmeter.plan.study import study_from_python
from speechmeter.store.exchanges import read_exchanges


async def answering(connection):
    async for message in connection:
        if isinstance(message, str) and "eof" in message:
            await connection.send(json.dumps({"text": "one two"}))
            return
        if isinstance(message, bytes):
            await connection.send(json.dumps({"partial": "one"}))


def test_two_processes_hold_the_streams_of_one_round(tmp_path):
    with web_socket(answering) as url:
        plan = {
            "models": [{"name": "server", "load": f"vosk-server:{url}"}], "audio": "sample", "seconds": 0.5,
            "pace": "realtime", "streams": 3, "clients": 2, "turns": 1, "silence": 0, "rounds": 1, "meters": ["memory"],
            "phase": "aligned",
        }  # fmt: skip
        made = run_study(study_from_python(plan), Options(output=tmp_path / "run"))
    (record,) = made.records
    assert (record.status, record.reason) == ("ok", "")
    assert record.find(metrics.LIVE_ANSWERED.id).values == (1.0, 1.0, 1.0)
    assert any("2 client processes" in note for note in record.find(metrics.ITEMS.id).notes["notes"])
    (file,) = (tmp_path / "run").rglob("exchanges-0.jsonl.gz")
    found = read_exchanges(file).exchanges
    assert sorted(one.stream for one in found) == [0, 1, 2]
    assert {one.due_s for one in found} == {0.0}  # they count from one moment
