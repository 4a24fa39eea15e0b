"""Runs by hand for the report: every section filled, hostile names, several machines, and any number of records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

from conftest import make_case, make_record

from speechmeter.analysis.live import measurements
from speechmeter.core import metrics
from speechmeter.core.live import Anchors, Conditions, Event, Exchange, Send, Sound, Word
from speechmeter.core.memory_timeline import FILE, Held, MemoryTimeline, write_timeline
from speechmeter.core.protocol import LiveProtocol, SearchProtocol
from speechmeter.core.types import Environment, Measurement, Record, Spec
from speechmeter.store.exchanges import ExchangeWriter, exchange_file

HOSTILE = ("<script>alert(1)</script>", "x" * 300, "语音识别模型 · 基础")
ROUNDS = (1.0, 1.04, 0.98)
_IDS = [f"utterance-{n}" for n in range(24)]
_WORDS = [10.0, 12.0, 8.0, 15.0, 9.0, 11.0, 7.0, 14.0] * 3

CPU = Environment(facts={"host": "desk", "cpu": "Some CPU 3000", "packages": {"torch": "2.11.0"}, "python": "3.12.1"})
GPU = Environment(facts={"host": "cluster", "cpu": "Other CPU", "gpu": "NVIDIA H200", "packages": {"torch": "2.11.0"}})


def grid(name: str, scale: float = 1.0, host: str = "desk", **axes) -> list[Record]:
    """Seconds × batch in three rounds, one cell out of memory, one left out by the plan."""
    made = []
    for order, (round, seconds, batch) in enumerate(product(range(3), (1.0, 5.0), (1, 4))):
        case = make_case(name, seconds=seconds, batch=batch, meters=("latency", "memory", "flops", "energy"), **axes)
        if (seconds, batch) == (5.0, 4):
            failed = {"status": "oom", "reason": "needs 30 GiB"} if name == "alpha" else {"status": "skipped"}
            made.append(make_record(case, round=round, sequence=order, host=host, **failed))
            continue
        time = 0.02 * scale * seconds**1.1 * batch**0.8 * ROUNDS[round]
        made.append(make_record(case, *_costs(time, seconds, batch), round=round, sequence=order, host=host,
                                started="2026-05-01T10:00:00+00:00", wall_s=3.2,
                                warnings=("another process was busy",) if batch == 4 else ()))  # fmt: skip
    return made


def _costs(time: float, seconds: float, batch: int) -> list[Measurement]:
    samples = [time * factor for factor in (1.0, 1.01, 0.99, 1.3)]
    return [
        Measurement.of(metrics.LATENCY_LOAD, [1.5]),
        Measurement.of(metrics.LATENCY_FIRST, [time * 4]),
        Measurement.of(metrics.LATENCY, samples),
        Measurement.of(metrics.LATENCY, [s * 0.1 for s in samples], scope="stage:features"),
        Measurement.of(metrics.LATENCY, [s * 0.9 for s in samples], scope="stage:model"),
        Measurement.of(metrics.AUDIO_SECONDS, [seconds * batch]),
        Measurement.of(metrics.ITEMS, [float(batch)]),
        Measurement.of(metrics.MEMORY_CPU_TOTAL, [6e8 + 3e7 * seconds * batch]),
        Measurement.of(metrics.MEMORY_CPU_LOAD, [5.8e8]),
        Measurement.of(metrics.MEMORY_CPU_PEAK, [3e7 * seconds * batch]),
        Measurement.of(metrics.PARAMETERS, [2_370_144.0]),
        Measurement.of(metrics.FLOPS, [4e9 * seconds * batch]),
        Measurement.of(metrics.ENERGY_CPU, [time * 60], source="RAPL"),
        Measurement.of(metrics.ENERGY_CPU_NET, [time * 40], source="RAPL"),
    ]


def system(name: str, errors: list[int], time: float) -> list[Record]:
    """A recogniser over 24 utterances."""
    case = make_case(name, meters=("latency", "quality"), workload=Spec(plugin="data", name="test.jsonl"))
    scored = [
        Measurement.of(metrics.ANSWERED, [1.0] * 24, notes={"utterances": _IDS}),
        Measurement.of(metrics.WORD_ERRORS, [float(e) for e in errors * 3]),
        Measurement.of(metrics.REFERENCE_WORDS, _WORDS),
    ]
    return [
        make_record(
            case,
            Measurement.of(metrics.LATENCY, [time * scale * factor for factor in (1.0, 1.01, 0.99)]),
            Measurement.of(metrics.AUDIO_SECONDS, [1.0]),
            *(scored if round == 0 else ()),
            round=round, sequence=round, host="desk",
        )
        for round, scale in enumerate(ROUNDS)
    ]  # fmt: skip


def systems() -> list[Record]:
    """One on the front by a wide margin, one dominated, two that cannot be told apart."""
    return [
        *system("exact", [0, 1, 0, 1, 0, 0, 1, 0], 0.5),
        *system("quick", [3, 4, 2, 5, 3, 3, 7, 4], 0.05),
        *system("beaten", [4, 5, 3, 6, 4, 4, 7, 5], 0.8),
        *system("alike", [3, 4, 2, 5, 3, 4, 6, 4], 0.051),
    ]


def loss(name: str, time: float, part: str, **fields) -> list[Record]:
    """A transducer loss with its peaks, so that it has a floor; or one that failed."""
    case = make_case(name, part=part, vocabulary=500, device="cuda", meters=("latency", "memory"),
                     workload=Spec(plugin="shapes", name="shapes"),
                     subject=Spec(plugin="transducer-loss", name=name, source=name))  # fmt: skip
    found = [
        Measurement.of(metrics.CELLS, [1e6]),
        Measurement.of(metrics.CELLS_PADDED, [1.5e6]),
        Measurement.of(metrics.PEAK_BANDWIDTH, [4e12]),
        Measurement.of(metrics.PEAK_FLOPS, [5e13]),
        Measurement.of(metrics.MEMORY_CUDA_GROWTH, [time * 1e12]),
    ]
    return [
        make_record(
            case,
            *([Measurement.of(metrics.LATENCY, [time * scale]), *found] if not fields else ()),
            round=round, sequence=round, host="cluster", **fields,
        )
        for round, scale in enumerate(ROUNDS)
    ]  # fmt: skip


def losses() -> list[Record]:
    """Two that ran and one that is not installed, alone and as a step."""
    absent = {"status": "unavailable", "reason": "not installed"}
    return [
        record
        for part in ("loss", "step")
        for record in (*loss("ours", 0.002, part), *loss("other", 0.005, part), *loss("absent", 0.0, part, **absent))
    ]


def training() -> list[Record]:
    """A step whose modules were timed, forward and backward."""
    case = make_case("conformer", meters=("latency", "modules"), workload=Spec(plugin="features", name="features"))
    times = {
        "net": ("Net", 0.001, 0.002),
        "net.embed": ("Conv2d", 0.01, 0.02),
        "net.layers.0": ("Layer", 0.002, 0.003),
        "net.layers.0.attention": ("Attention", 0.03, 0.06),
        "net.layers.0.feed_forward": ("Linear", 0.02, 0.05),
        "net.layers.1": ("Layer", 0.002, 0.003),
        "net.layers.1.attention": ("Attention", 0.03, 0.06),
        "net.layers.1.feed_forward": ("Linear", 0.02, 0.05),
    }
    rows = [
        Measurement.of(metrics.TIME_MODULE, [ahead + back], scope=f"module:{path}",
                       notes={"class": kind, "calls": 1, "forward": [ahead], "backward": [back]})
        for path, (kind, ahead, back) in times.items()
    ]  # fmt: skip
    rest = Measurement.of(metrics.TIME_MODULE, [0.01], scope="unattributed", notes={"backward": [0.01], "calls": 0})
    return [
        make_record(case, Measurement.of(metrics.LATENCY, [0.3]), *rows, rest, round=n, host="desk") for n in (0, 1)
    ]


def timeline(device: str = "cuda:0") -> MemoryTimeline:
    """Memory that rises and falls in one step."""
    return MemoryTimeline(
        device=device, duration_s=0.4, time_s=(0.0, 0.1, 0.2, 0.3),
        allocated_bytes=(10**8, 3 * 10**8, 9 * 10**8, 10**8),
        reserved_bytes=(10**9,) * 4, start_bytes=10**8, peak_bytes=9 * 10**8, peak_s=0.2,
        held=(Held(bytes=6 * 10**8, count=3, module="net.layers.0.attention", operator="aten::bmm"),
              Held(bytes=2 * 10**8, count=1, module="", operator="aten::empty")), count=4,
    )  # fmt: skip


def search() -> list[Record]:
    """What fits of two models at three lengths, one of which never fails and one of which nothing fits at 30 s."""
    protocol = SearchProtocol(find="max-batch")
    room = {"base": 7000.0, "large": 500.0}
    made = []
    for (name, most), seconds, batch in product(room.items(), (1.0, 10.0, 30.0), (64, 256)):
        case = make_case(name, seconds=seconds, batch=batch, protocol=protocol, device="cuda", meters=("memory",))
        found = [Measurement.of(metrics.MEMORY_CUDA_ALLOCATED, [2e7 * seconds * batch])]
        fits = seconds * batch <= most
        status = {} if fits else {"status": "oom", "reason": "CUDA out of memory"}
        made.append(make_record(case, *(found if fits else ()), sequence=len(made), host="cluster", **status))
    return made


_SPOKEN = (("one", 0.4, 0.7), ("two", 0.9, 1.2), ("three", 1.4, 1.9))


def _exchange(name: str, late_s: float, *, restless: bool) -> Exchange:
    """An utterance of three words whose partials and final come so late; a restless system shows a wrong word first."""
    words = tuple(Word(text=text, start_s=start, end_s=end) for text, start, end in _SPOKEN)
    shown = [" ".join(text for text, _, _ in _SPOKEN[: count + 1]) for count in range(len(_SPOKEN))]
    wrong = ["what", "one to", "one two free"]
    events = [
        Event(kind="partial", moment_s=end + late_s, text=wrong[place] if restless else shown[place])
        for place, (_, _, end) in enumerate(_SPOKEN)
    ]
    events.append(Event(kind="final", moment_s=2.0 + 2 * late_s, text=shown[-1]))
    anchors = Anchors(speech_start_s=0.4, speech_end_s=2.0, words=words, source="by hand")
    sends = tuple(
        Send(due_s=n / 10, sent_s=n / 10, done_s=n / 10, from_s=(n - 1) / 10, to_s=n / 10) for n in range(1, 31)
    )
    return Exchange(
        utterance=name, reference="one two three", anchors=anchors, audio_s=2.2, silence_s=0.8, sends=sends,
        finish_s=3.0, finished_s=3.0, events=tuple(events), ended_s=3.5, timeout_s=30.0,
    )  # fmt: skip


def live(artifacts: Path) -> list[Record]:
    """Two live systems over twelve utterances in two rounds, and their exchanges in this folder."""
    protocol = LiveProtocol(
        turn_end="oracle", turn_delay_s=1.0, turn_vad="", silence_s=0.8, quiet_s=3.0, timeout_s=30.0, phase="random",
        turns=None, duration_s=None, warmup_turns=0,
    )  # fmt: skip
    conditions = Conditions(pace="realtime", chunk_s=0.1, turn_end="oracle", quiet_s=3.0)
    made = []
    for name, late_s in (("prompt", 0.1), ("restless", 0.4)):
        case = make_case(
            name, meters=("memory",), workload=Spec(plugin="data", name="talks.jsonl"), protocol=protocol,
            pace="realtime", chunk=0.1, streams=1,
        )  # fmt: skip
        for number in range(2):
            held = [
                _exchange(f"talk-{n}", late_s + 0.01 * n + 0.005 * number, restless=name == "restless")
                for n in range(12)
            ]
            writer = ExchangeWriter(artifacts / case.id / exchange_file(number))
            writer.begin(conditions)
            for exchange in held:
                writer.take(exchange)
            writer.close()
            made.append(
                make_record(case, *measurements(held, conditions), round=number, sequence=len(made), host="desk")
            )
    return made


def _answer(number: int, late_s: float, gap_s: float) -> Exchange:
    """A second of sound in four pieces, of which the last comes late, with 0.2 s of silence before the speech."""
    moments = [late_s + piece / 16 + gap_s * (piece == 3) for piece in range(4)]
    events = tuple(
        Event(kind="audio", moment_s=moment, audio=8000, start_s=piece / 4, end_s=(piece + 1) / 4)
        for piece, moment in enumerate(moments)
    )
    text = f"Sentence number {number}."
    sound = Sound(rate=16_000, samples=16_000, peak=0.5, clipped=0, levels_db=(-120.0,) * 20 + (-9.0,) * 80)
    return Exchange(
        utterance=f"text-{number}", reference=text, text=text, audio_s=0.0, events=events, sound=sound, turn=number,
        started_s=3.0 * number, heard="sentence number", ended_s=moments[-1], timeout_s=30.0, warm_up=number == 0,
    )  # fmt: skip


def speech(artifacts: Path) -> list[Record]:
    """Two voices over twelve texts in two rounds, their exchanges and two sound files each in this folder."""
    import numpy as np
    import soundfile

    protocol = LiveProtocol(
        turn_end="system", turn_delay_s=0.0, turn_vad="", silence_s=2.0, quiet_s=3.0, timeout_s=30.0, phase="random",
        turns=None, duration_s=None, warmup_turns=1, prebuffer_s=0.1, heard_by={"name": "ear", "load": "ear"},
    )  # fmt: skip
    conditions = Conditions(
        pace="fast", chunk_s=0.1, turn_end="system", quiet_s=3.0, texts=False, speaks=True, reads=True,
        prebuffer_s=0.1, heard_by="ear",
    )  # fmt: skip
    made = []
    for name, late_s, gap_s in (("smooth", 0.2, 0.0), ("stutters", 0.1, 1.5)):
        workload = Spec(plugin="text", name="lines.txt")
        case = make_case(name, meters=(), workload=workload, protocol=protocol, pace="fast", chunk=0.1, streams=1)
        case = case.without_axis("seconds").without_axis("batch")
        for number in range(2):
            held = [_answer(n, late_s + 0.01 * n + 0.005 * number, gap_s) for n in range(13)]
            writer = ExchangeWriter(artifacts / case.id / exchange_file(number))
            writer.begin(conditions)
            for exchange in held:
                writer.take(exchange)
            writer.hear([exchange.heard for exchange in held])
            writer.close()
            found = measurements(held, conditions)
            made.append(make_record(case, *found, round=number, sequence=len(made), host="desk"))
        for n in (1, 2):
            tone = 0.1 * np.sin(np.arange(8_000) / 10 / n)
            soundfile.write(artifacts / case.id / f"text-{n}.flac", tone, 16_000)
    return made


def write(path: Path, records: Iterable[Record], environment: Environment) -> Path:
    """A run directory of these records, written at once: a store sees every line to the disk, which takes long."""
    lines = [replace(record, environment=environment.fingerprint).to_json() for record in records]
    path.mkdir(parents=True)
    (path / "plan.yaml").write_text("name: by-hand\n")
    (path / "environments.jsonl").write_text(json.dumps(environment.to_json()) + "\n")
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


RANDOM = "random weights: calls cost the same as with trained ones, but the output has no meaning"


def once(records: Iterable[Record]) -> list[Record]:
    """The first round of each case alone, by models that say that their weights are random."""
    told = Measurement.of(metrics.ITEMS, [1.0], notes={"notes": [RANDOM]})
    return [
        replace(record, measurements=(*(m for m in record.measurements if m.metric != metrics.ITEMS.id), told))
        for record in records
        if record.round == 0
    ]


def full(
    folder: Path, change: Callable[[Iterable[Record]], Iterable[Record]] = list, names: Iterable[str] = HOSTILE
) -> list[Path]:
    """Runs that fill every section of the page; the first two hold the same cells on two machines."""
    named = [record for name in names for record in grid(name)]
    runs = [
        write(folder / "desk", change([*grid("alpha"), *grid("beta", 2.5), *named]), CPU),
        write(folder / "cluster", change(grid("alpha", 0.05, host="cluster", device="cuda", threads=8)), GPU),
        write(folder / "accuracy", change(systems()), CPU),
        write(folder / "losses", change(losses()), GPU),
        write(folder / "training", change(training()), CPU),
        write(folder / "search", change(search()), GPU),
    ]
    runs.append(write(folder / "live", change(live(folder / "heard")), CPU))
    (folder / "heard").rename(folder / "live" / "artifacts")
    runs.append(write(folder / "speech", change(speech(folder / "spoken")), CPU))
    (folder / "spoken").rename(folder / "speech" / "artifacts")
    write_timeline(folder / "training" / "artifacts" / training()[0].case.id / FILE, timeline())
    return runs


def many(path: Path, count: int) -> Path:
    """A run of so many records, five rounds a case, ten samples a round."""
    made = []
    for order in range(count):
        cell, round = divmod(order, 5)
        case = make_case(f"model-{cell // 20}", seconds=float(2 ** (cell % 5)), batch=2 ** (cell // 5 % 4))
        time = 0.001234567 * (1 + cell % 20) * ROUNDS[round % 3]
        samples = [time * (1 + 0.000317 * place) for place in range(10)]
        made.append(
            make_record(
                case,
                Measurement.of(metrics.LATENCY_LOAD, [1.5]),
                Measurement.of(metrics.LATENCY_FIRST, [time * 4]),
                Measurement.of(metrics.LATENCY, samples),
                Measurement.of(metrics.LATENCY, samples, scope="stage:model"),
                Measurement.of(metrics.AUDIO_SECONDS, [float(2 ** (cell % 5))]),
                Measurement.of(metrics.MEMORY_CPU_PEAK, [1e7 + order] * 3),
                Measurement.of(metrics.PARAMETERS, [1e6]),
                Measurement.of(metrics.FLOPS, [1e9]),
                round=round, sequence=order, host="desk", started="2026-05-01T10:00:00+00:00", wall_s=3.2,
            )
        )  # fmt: skip
    return write(path, made, CPU)
