"""A schedule over several batches: every meter measures the batches of its active steps, and all are scored."""

from statistics import fmean

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.outputs import Keep
from speechmeter.core.protocols import ORDINARY, Installed, Phase, Prepared
from speechmeter.core.types import BATCHES, SAMPLED, Batch, Measurement, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters.latency import LatencyMeter
from speechmeter.meters.memory import MemoryMeter
from speechmeter.meters.quality import QualityMeter

CLASSIC = {"mode": "schedule", "wait": 10, "warmup": 10, "active": 20, "repeat": 2}
KEPT = [*range(20, 40), *range(60, 80)]


class Study:
    """A recogniser that answers every batch with its reference, and the batches: number n has 1 + n seconds."""

    summary, axes, options, runs_code = "", (), (), False

    def __init__(self, count):
        self.fed = []
        self._count = count

    def installed(self):
        return Installed(version="1")

    def check(self, case):
        return None

    def unavailable(self, case):
        return None

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=self._call), Stage(name="decode", fn=lambda text: [text])))

    def _call(self, batch):
        self.fed.append(int(batch.ids[0]))
        return batch.references[0]

    def batches(self, case):
        return [
            Batch(data=None, items=1, ids=(str(n),), audio_s=1.0 + n, references=(f"words {n}",))
            for n in range(self._count)
        ]


class Calls:
    """A meter that notes which batches it may call."""

    name, metrics, environ, ways, phase = "calls", (), {}, ORDINARY, Phase.TIMING

    def __init__(self):
        self.seen = []

    def unavailable(self, case):
        return None

    def measure(self, session):
        self.seen = [int(batch.ids[0]) for batch in session.batches]
        return []


def measured(count, *meters, protocol=None, folder=None, **changes):
    study = Study(count)
    case = make_case(
        protocol=CLASSIC if protocol is None else protocol, meters=tuple(m.name for m in meters), **changes
    )
    outcome = measure(case, study, study, meters, keep=Keep(folder=folder, outputs=folder is not None))
    assert outcome.status == "ok", outcome.reason
    return study, make_record(case, *outcome.measurements)


def test_the_classic_schedule_gives_40_samples_of_40_batches():
    calls = Calls()
    study, record = measured(80, LatencyMeter(), calls)
    latency = record.find(metrics.LATENCY.id)
    assert len(latency.values) == 40
    assert latency.notes[BATCHES] == 40
    assert SAMPLED not in latency.notes
    assert study.fed[:80] == list(range(80))
    assert calls.seen == KEPT
    assert record.find(metrics.AUDIO_SECONDS.id).values == tuple(1.0 + n for n in KEPT)
    said = record.find(metrics.ITEMS.id).notes["notes"]
    assert said == ["schedule: steps 20–39, 60–79 are measured, 40 of 80 batches"]


def test_the_real_time_factor_is_of_the_audio_that_was_measured():
    _, record = measured(80, LatencyMeter())
    time = fmean(record.find(metrics.LATENCY.id).values)
    audio = fmean(1.0 + n for n in KEPT)
    assert estimate([record], metrics.RTF).value == pytest.approx(time / audio)


def test_memory_is_read_of_the_batches_that_are_timed():
    study, record = measured(80, MemoryMeter())
    assert len(record.find(metrics.MEMORY_CPU_PEAK.id).values) == 40
    assert study.fed == [0, *KEPT]  # the first call, and those that are read stage by stage


def test_all_batches_are_scored_and_written(tmp_path):
    pytest.importorskip("jiwer")
    _, record = measured(80, LatencyMeter(), QualityMeter(), folder=tmp_path)
    assert len(record.find(metrics.ANSWERED.id).values) == 80
    (text,) = tmp_path.rglob("text.tsv")
    assert len(text.read_text().splitlines()) == 80
    (timed,) = tmp_path.rglob("utterances.jsonl")
    assert len(timed.read_text().splitlines()) == 40


def test_a_single_batch_is_measured_as_before():
    _, record = measured(1, LatencyMeter())
    latency = record.find(metrics.LATENCY.id)
    assert (len(latency.values), BATCHES in latency.notes, SAMPLED in latency.notes) == (40, False, False)
    assert "notes" not in record.find(metrics.ITEMS.id).notes


def test_figures_of_batches_that_do_not_come_in_turn_are_those_of_their_own_samples():
    protocol = {"mode": "schedule", "wait": 1, "warmup": 1, "active": 3, "repeat": 2}
    _, record = measured(3, LatencyMeter(), protocol=protocol)
    sampled = record.find(metrics.LATENCY.id).notes[SAMPLED]
    assert sampled == [0, 1, 2, 2, 0, 1]
    assert record.find(metrics.AUDIO_SECONDS.id).values == (3.0, 1.0, 2.0)
    times = [3.0, 1.0, 2.0, 4.0, 5.0, 3.0]  # seconds of audio, and 2 more in the second cycle
    notes = {BATCHES: 3, SAMPLED: sampled}
    audio = Measurement.of(metrics.AUDIO_SECONDS, (3.0, 1.0, 2.0))
    made = make_record(record.case, Measurement.of(metrics.LATENCY, times, notes=notes), audio)
    assert estimate([made], metrics.LATENCY).value == pytest.approx(fmean([4.0, 2.0, 3.0]))
    worst = estimate([made], metrics.RTF, statistic="max")
    assert worst.value == pytest.approx(3.0)  # 3 s for the batch of 1 s
