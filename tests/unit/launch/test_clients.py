"""Several clients that hold one round together: their shares, the common start, and what becomes of their answers."""

import json
from dataclasses import replace

import pytest
from conftest import make_case
from live_rounds import PROTOCOL, known, utterance

from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.live import Conditions
from speechmeter.core.outputs import Keep
from speechmeter.core.types import Measurement
from speechmeter.engine.live.clock import run
from speechmeter.engine.live.conversation import Manner
from speechmeter.engine.live.round import Part, Round, Script
from speechmeter.engine.measure import Outcome
from speechmeter.launch.clients import ClientResult, clients_of, hold_together, merged
from speechmeter.launch.cluster import Machine, Machines, Node, Requirements
from speechmeter.launch.cluster_clients import ClusterClients, check_clients
from speechmeter.launch.share import Share
from speechmeter.plan.study import study_from_python
from speechmeter.store.exchanges import ExchangeLog, ExchangeWriter, read_exchanges

FOUR = [utterance(f"u{n}") for n in range(4)]
CONDITIONS = Conditions(pace="realtime", chunk_s=0.1, turn_end="system", quiet_s=3.0)


def held_by(parts, *, streams=1, rate=None, **protocol):
    """The exchanges of a round that is held by so many clients, each on a virtual clock of its own."""
    made = replace(PROTOCOL, **protocol)
    found = []
    for index in range(parts):
        live = known(FOUR)
        script, _ = Script.of_all(FOUR, warmup_turns=0, streams=streams, seed="3")
        script = script.arriving(made, rate).share(Part(index=index, of=parts, begin=lambda: 0.0))

        async def work(clock, script=script, live=live):
            manner = Manner(live=live, protocol=made, pace="realtime", chunk_s=0.1)
            await Round(script=script, manner=manner, clock=clock, take=found.append).hold()

        run(work, virtual=True)
    return sorted(found, key=lambda one: (one.stream, one.turn))


@pytest.mark.parametrize("how", [{"streams": 5, "phase": "random"}, {"arrivals": "poisson", "rate": 2.0, "turns": 9}])
def test_clients_together_hold_exactly_the_round_of_one(how):
    assert held_by(2, **how) == held_by(3, **how) == held_by(1, **how)


def test_there_are_no_more_clients_than_streams():
    case = make_case(pace="realtime", chunk=0.1, streams=2, protocol=replace(PROTOCOL, clients=3))
    assert clients_of(case) == 2
    assert clients_of(make_case()) == 1


class Fake:
    """A client that is ready when it was asked often enough."""

    def __init__(self, asked=1, fails=False):
        self.left, self.fails, self.begun, self.stopped = asked, fails, None, False

    def is_ready(self):
        self.left -= 1
        return self.left <= 0

    def begin(self, moment_s):
        self.begun = moment_s

    def result(self):
        if self.fails:
            raise KeyboardInterrupt
        return ClientResult(outcome=Outcome(status="ok"), log=None)

    def stop(self):
        self.stopped = True


def test_all_begin_at_one_moment_when_the_last_is_ready_and_none_is_left():
    early, late = Fake(), Fake(asked=3)
    assert len(hold_together([early, late])) == 2
    assert early.begun == late.begun and late.left == 0
    assert early.stopped and late.stopped
    broken, other = Fake(fails=True), Fake()
    with pytest.raises(KeyboardInterrupt):
        hold_together([broken, other])
    assert broken.stopped and other.stopped


def measured_by(exchanges, *, slip=0.001, status="ok", reason="", warnings=()):
    found = (
        Measurement.of(metrics.CLIENT_SLIP_P99, [slip]),
        Measurement.of(metrics.ITEMS, [1.0] * len(exchanges), notes={"notes": ["a server"]}),
        Measurement.of(metrics.AUDIO_SECONDS, [1.0] * len(exchanges)),
    )
    outcome = Outcome(status=status, reason=reason, measurements=found, warnings=tuple(warnings))
    return ClientResult(
        outcome=outcome, log=ExchangeLog(conditions=CONDITIONS, exchanges=tuple(exchanges)), clock="a, b"
    )


def test_the_outcome_is_that_of_all_conversations_and_of_the_latest_client(tmp_path):
    whole = held_by(1, streams=2)
    case = make_case(pace="realtime", chunk=0.1, streams=2, protocol=replace(PROTOCOL, clients=2))
    halves = [[one for one in whole if one.stream == stream] for stream in (0, 1)]
    both = [
        measured_by(halves[0], warnings=["x"]),
        measured_by(halves[1], slip=0.02, warnings=["x", "client-bound: y"]),
    ]
    found = merged(case, 0, both, Keep(folder=tmp_path))
    by_id = {one.metric: one for one in found.measurements}
    assert by_id[metrics.CLIENT_SLIP_P99.id].values == (0.02,)
    assert by_id[metrics.CLIENT_SLIP_P99.id].notes["clients"] == [0.001, 0.02]
    assert len(by_id[metrics.FINALIZE_DELAY.id].values) == len(by_id[metrics.ITEMS.id].values) == len(whole) == 8
    assert "the load came from 2 client processes: a, b; a, b" in by_id[metrics.ITEMS.id].notes["notes"]
    assert found.warnings == ("x", "client-bound: y")
    stored = read_exchanges(tmp_path / case.id / "exchanges-0.jsonl.gz").exchanges
    assert sorted(one.stream for one in stored) == [0] * 4 + [1] * 4


def test_sound_and_what_was_heard_come_from_every_client(tmp_path):
    spoken = [replace(one, text="Hello there.", heard=f"hello {one.utterance}") for one in held_by(1, streams=2)]
    case = make_case(pace="realtime", chunk=0.1, streams=2, protocol=replace(PROTOCOL, clients=2))
    both = []
    for stream in (0, 1):
        folder = tmp_path / str(stream) / case.id
        writer = ExchangeWriter(folder / "exchanges-0.jsonl.gz")
        writer.begin(CONDITIONS)
        own = [one for one in spoken if one.stream == stream]
        for one in own:
            writer.take(one)
        writer.hear([one.heard for one in own])
        writer.close()
        (folder / f"u{stream}.flac").write_bytes(bytes([stream]))
        both.append(ClientResult.of(Outcome(status="ok"), folder / "exchanges-0.jsonl.gz"))
    found = merged(case, 0, both, Keep(folder=tmp_path / "run"))
    kept = tmp_path / "run" / case.id
    assert {path.name: path.read_bytes() for path in kept.glob("*.flac")} == {"u0.flac": b"\0", "u1.flac": b"\1"}
    stored = read_exchanges(kept / "exchanges-0.jsonl.gz").exchanges
    assert len(stored) == 8 and all(one.heard == f"hello {one.utterance}" for one in stored)
    assert [text for text in found.warnings if "7 of 8 texts had been sent before" in text]


def test_a_client_that_fails_makes_the_round_fail():
    exchanges = held_by(1, streams=2)
    case = make_case(pace="realtime", chunk=0.1, streams=2, protocol=replace(PROTOCOL, clients=2))
    lost = ClientResult(outcome=Outcome(status="crashed", reason="killed by SIGKILL"), log=None)
    found = merged(case, 0, [measured_by(exchanges), lost], Keep())
    assert (found.status, found.reason) == ("crashed", "client 2 of 2: killed by SIGKILL")


def test_exchanges_that_did_not_arrive_are_no_smaller_load():
    exchanges = held_by(1, streams=2)
    case = make_case(pace="realtime", chunk=0.1, streams=2, protocol=replace(PROTOCOL, clients=2))
    lost = ClientResult(outcome=Outcome(status="ok"), log=None)
    found = merged(case, 0, [measured_by(exchanges), lost], Keep())
    assert (found.status, found.reason) == ("error", "client 2 of 2: its file of conversations is missing or damaged")
    assert not any(one.metric == metrics.LIVE_ANSWERED.id for one in found.measurements)  # no verdict counts it


def test_a_share_learns_of_the_start_by_files(tmp_path):
    share = Share.from_json(json.loads(json.dumps(Share(index=1, of=2, folder=tmp_path).to_json())))
    assert not share.is_ready()
    share.begin(12.5)
    assert share.part().begin() == 12.5
    assert share.is_ready()


PLAN = {"models": ["vosk-server:ws://127.0.0.1:9"], "audio": "sample", "seconds": 1, "pace": "fast", "streams": 2,
        "clients": 2, "meters": []}  # fmt: skip
REFUSED = [
    ({"models": ["known:live"]}, "subprocess", "runs in the process that measures, so it cannot have 2 clients"),
    (
        {"models": [{"load": "vosk-server:ws://127.0.0.1:{port}", "start": "true {port}"}]},
        "subprocess",
        "`start` starts a server for each client",
    ),
    ({}, "inline", "there cannot be several `clients`"),
    ({"clients": 0}, "subprocess", "clients"),
]


@pytest.mark.parametrize(("changes", "launcher", "reason"), REFUSED)
def test_what_several_clients_cannot_hold_is_refused(changes, launcher, reason, tmp_path):
    with pytest.raises(InputError) as raised:
        run_study(study_from_python({**PLAN, **changes}), Options(output=tmp_path / "run", launcher=launcher))
    assert reason in str(raised.value)


class Workers:
    """A cluster whose workers are here, each with a clock that is off."""

    def __init__(self, offsets):
        self.offsets, self.begun, self.released = offsets, {}, set()

    def call(self, lane, setting, method, *given):
        from time import perf_counter

        number = lane.number
        if method == "clock":
            return perf_counter() + self.offsets[number]
        if method == "begin":
            self.begun[number] = given[0] - self.offsets[number]
        if method == "client_result":
            return {"outcome": {"status": "ok", "reason": "", "warnings": [], "measurements": [], "environment": None},
                    "files": {}}  # fmt: skip
        return True

    def release(self, lane):
        self.released.add(lane.number)


def machines_of(count, case, cluster):
    found = [
        Machine(node=Node(id=str(n), name=f"m{n}", cpus=64), host=f"m{n}", cores=tuple(range(64))) for n in range(count)
    ]
    return Machines(cluster=cluster, requirements=Requirements(cases=[case]), machines=tuple(found), absent=())


def test_machines_begin_together_although_their_clocks_differ():
    case = make_case(pace="realtime", chunk=0.1, streams=4, protocol=replace(PROTOCOL, clients=2))
    cluster = Workers([1000.0, -5.0])
    ClusterClients(machines_of(2, case, cluster), Keep()).measure(case, lambda phase: None)
    assert cluster.released == {0, 1}
    assert abs(cluster.begun[0] - cluster.begun[1]) < 0.01  # on one clock


def test_clients_need_as_many_machines():
    case = make_case(pace="realtime", chunk=0.1, streams=4, protocol=replace(PROTOCOL, clients=3))
    with pytest.raises(InputError, match="3 clients need as many machines, and 2 of this cluster"):
        check_clients(machines_of(2, case, Workers([0, 0])))
    with pytest.raises(InputError, match="has a single client, and others have several"):
        check_clients(machines_of(2, make_case(), Workers([0, 0])))
