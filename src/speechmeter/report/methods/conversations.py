"""How conversations with live systems were held: what was sent and when, by which clock, and what figures mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from speechmeter.analysis.live.measure import HEARD_BY
from speechmeter.analysis.live.resampling import LEAST_ROUNDS, LEAST_UTTERANCES
from speechmeter.analysis.live.samples import names_of
from speechmeter.analysis.live.sound import BELOW_DB, FLOOR_DB, LEAST_FRAMES
from speechmeter.core import metrics
from speechmeter.core.axes import REALTIME
from speechmeter.core.live import FRAME_S
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import RECORDED, LiveProtocol
from speechmeter.core.types import Case, Record
from speechmeter.report import live, speech
from speechmeter.report.caveats import record_notes
from speechmeter.report.methods.words import Groups, capital, has_values, listed
from speechmeter.report.numbers import number

_TURN_ENDS: dict[str, Callable[[LiveProtocol], str]] = {
    "system": lambda protocol: "the system decided when a turn ended",
    "oracle": lambda protocol: f"the input ended {_s(protocol.turn_delay_s)} after the true end of speech (oracle)",
    "client-vad": lambda protocol: (
        f"the client ended the input after {_s(protocol.turn_delay_s)} without speech (detector: {protocol.turn_vad})"
    ),
}
_ONSET = (
    f"Sound is audible where the first {LEAST_FRAMES * FRAME_S * 1000:g} ms on end are above {FLOOR_DB:g} dBFS and "
    f"above {BELOW_DB:g} dB below the loudest {FRAME_S * 1000:g} ms."
)


def measured(groups: Groups) -> list[str]:
    """What was measured of live systems, in words."""
    hearing, reading = _apart(groups)
    answering = has_values(hearing, metrics.VOICE_TO_VOICE)
    return [
        *(["spoken answers to speech"] if answering else []),
        *(["live recognition"] if hearing and not answering and _any(hearing, live.SHOWN) else []),
        *(["live speech synthesis"] if _any(reading, speech.SHOWN) else []),
    ]


def held(groups: Groups) -> str:
    """How input was sent, how many conversations there were at once and in a round, and what was done with sound."""
    hearing, reading = _apart(groups)
    both = [*hearing, *reading]
    said = [_servers(both), _audio(hearing), _texts(reading), _load(both), _counts(both)]
    protocols = [protocol for group in both if (protocol := group[0].case.live) is not None]
    limit = listed(dict.fromkeys(_s(one.timeout_s) for one in protocols), "or")
    inputs = ["audio"] * bool(hearing) + ["text"] * bool(reading)
    said += [f"An answer was awaited for {limit} after the {listed(inputs, 'or')}."] if protocols else []
    said += [_heard_by(both)]
    said += _stated("Each answer was interrupted {} after its first sound.", (one.interrupt_s for one in protocols))
    clients = sorted({one.clients for one in protocols} - {1})
    said += [f"{listed(map(str, clients), 'or')} client processes held the conversations together."] if clients else []
    return " ".join(filter(None, said))


def clock(groups: Groups) -> str:
    """Which clock moments are of, from when delays count, and how late the client was."""
    hearing, reading = _apart(groups)
    if not hearing and not reading:
        return ""
    virtual = [group for group in [*hearing, *reading] if _is_virtual(group)]
    real = "Moments are those of one monotonic clock of the client."
    simulated = "Moments are those of a virtual clock, on which no real time passed."
    said = [simulated] if len(virtual) == len(hearing) + len(reading) else [real]
    if 0 < len(virtual) < len(hearing) + len(reading):
        said = [f"{real[:-1]}, and of a virtual one for {listed(group[0].case.subject.name for group in virtual)}."]
    if any(group[0].case.axes.pace == REALTIME for group in hearing):
        said.append(
            "A position in the audio is due when a microphone would have delivered it, at the end of its chunk."
        )
    if reading:
        said.append("Delays of sound count from when the text, or its first token, was due.")
    late = [m.values[0] for group in groups for record in group if not _is_virtual(group)
            if (m := record.find(metrics.CLIENT_SLIP_P99.id)) is not None and m.values]  # fmt: skip
    said += [f"The client sent audio at most {_s(max(late))} late (99th percentile of a round)."] if late else []
    return " ".join(said)


def figures(groups: Groups) -> str:
    """Definitions of the figures that the tables of live systems show, and how figures and intervals are made."""
    hearing, reading = _apart(groups)
    answering = has_values(hearing, metrics.VOICE_TO_VOICE)
    asked = [*(live.SHOWN if hearing else ()), *(speech.SHOWN if reading or answering else ())]
    asked += speech.ANSWERS if answering else []
    shown = [metric for metric in dict.fromkeys(asked) if has_values([*hearing, *reading], metric)]
    if not shown:
        return ""
    said = [f"{capital(metric.title)}: {metric.definition}." for metric in shown]
    said += [_ONSET] if metrics.FIRST_SOUND in shown else []
    scored = sorted(_notes([*hearing, *reading], "normaliser"))
    if scored and not any(group[0].case.protocol.quality for group in groups):
        said.append(f"Texts were normalised by {listed(scored)} before they were scored.")
    return " ".join([*said, _statistics([*hearing, *reading])])


def _apart(groups: Groups) -> tuple[list[Sequence[Record]], list[Sequence[Record]]]:
    """(systems that are spoken to, systems that are given text)."""
    both = [group for group in groups if group[0].case.live is not None]
    reading = [group for group in both if group[0].case.workload.plugin == live.TEXT]
    return [group for group in both if group not in reading], reading


def is_server(case: Case) -> bool:
    """Whether the system is behind an address, so that device and threads of the case are those of the client."""
    return case.live is not None and "://" in case.subject.source


def _servers(groups: Groups) -> str:
    """What a server's name cannot say: that the client measured it, and by which dialect."""
    cases = [group[0].case for group in groups if is_server(group[0].case)]
    named = listed(f"{case.subject.name} ({case.subject.plugin})" for case in cases)
    were = "was a server" if len({case.subject.name for case in cases}) == 1 else "were servers"
    return f"{named} {were}; delays include the connection to it." if cases else ""


def _audio(hearing: Groups) -> str:
    cases = [group[0].case for group in hearing]
    if not cases:
        return ""
    paces = dict.fromkeys("in real time" if case.axes.pace == REALTIME else "as fast as possible" for case in cases)
    chunks = dict.fromkeys(number(case.axes.chunk_s, "s") for case in cases)
    silences = dict.fromkeys(_s(case.live.silence_s) for case in cases if case.live is not None)
    ends = dict.fromkeys(_TURN_ENDS[case.live.turn_end](case.live) for case in cases if case.live is not None)
    return (
        f"Audio was fed {listed(paces, 'or')}, in chunks of {listed(chunks, 'or')}, with {listed(silences, 'or')} of "
        f"silence after each utterance; {listed(ends, 'or')}."
    )


def _texts(reading: Groups) -> str:
    paces = dict.fromkeys(group[0].case.axes.text_pace for group in reading)
    words = ["at once" if pace is None else f"at {pace:g} tokens per second" for pace in paces]
    return f"Texts were sent {listed(words, 'or')}." if words else ""


def _load(groups: Groups) -> str:
    """How many conversations ran at once, or when they began."""
    cases = [group[0].case for group in groups]
    arriving = [case for case in cases if case.live is not None and case.live.arrivals]
    streams = sorted({case.axes.streams for case in cases if case not in arriving})
    said = []
    if streams == [1]:
        said.append("Conversations followed one another in one stream.")
    elif streams:
        starts = dict.fromkeys(
            "at random moments" if case.live is not None and case.live.phase == "random" else "together"
            for case in cases if case not in arriving and case.axes.streams > 1
        )  # fmt: skip
        many = listed(map(str, streams), "or")
        said.append(
            f"Conversations were held in {many} streams at the same time, which started {listed(starts, 'or')}."
        )
    if arriving:
        said.append(_arrivals(arriving))
    return " ".join(said)


def _arrivals(cases: Sequence[Case]) -> str:
    rates = sorted({case.axes.rate for case in cases if case.axes.rate is not None})
    protocols = [case.live for case in cases if case.live is not None]
    kinds = listed(dict.fromkeys(one.arrivals for one in protocols if one.arrivals != RECORDED), "or")
    ways = [f"at {listed((f'{rate:g}' for rate in rates), 'or')} per second ({kinds} arrivals)"] if rates else []
    ways += ["at recorded moments"] if any(one.arrivals == RECORDED for one in protocols) else []
    ramps = _stated("those of the first {} were not measured", (one.ramp_s or None for one in protocols))
    return f"Conversations began {'; '.join([listed(ways, 'or'), *ramps])}."


def _counts(groups: Groups) -> str:
    """How many conversations a round had, and about how many utterances or texts."""
    names = [said for group in groups for record in group if (said := names_of(record))]
    if not names:
        return ""
    many, distinct = _span(map(len, names)), _span(len(set(said)) for said in names)
    what = listed(
        dict.fromkeys("text" if g[0].case.workload.plugin == live.TEXT else "utterance" for g in groups), "or"
    )
    warmed = _span(_warmed(group) for group in groups)
    warm = "without warm-up" if warmed == "0" else f"after a warm-up with {warmed} other{'' if warmed == '1' else 's'}"
    noun = what if distinct == "1" else f"{what}s"
    return f"A round had {many} conversation{'' if many == '1' else 's'} about {distinct} distinct {noun}, {warm}."


def _warmed(group: Sequence[Record]) -> int:
    """How many utterances the warm-up had: none where there was only one utterance."""
    protocol = group[0].case.live
    dropped = any(text.startswith("no warm-up") for record in group for text in record.warnings)
    return 0 if protocol is None or dropped else protocol.warmup_turns


def _heard_by(groups: Groups) -> str:
    buffers = _notes(groups, "prebuffer_s")
    said = (
        _stated("Playback was simulated; it began when {} of sound had come.", map(float, buffers)) if buffers else []
    )
    ears = listed(sorted(_notes(groups, HEARD_BY)))
    return " ".join([*said, *([f"After the conversations {ears} heard the sound (round trip)."] if ears else [])])


def _statistics(groups: Groups) -> str:
    text = "Delays are percentiles over the conversations of all rounds, and rates are ratios of sums over them"
    several = [len({name for record in group for name in names_of(record)}) >= LEAST_UTTERANCES for group in groups]
    rounds = [sum(record.status == "ok" for record in group) >= LEAST_ROUNDS for group in groups]
    if not any(several):
        return f"{text}; there are no intervals, because there were fewer than {LEAST_UTTERANCES} utterances."
    over = "utterances and rounds" if all(rounds) else "utterances" if not any(rounds) else (
        f"utterances, and over rounds of cases with at least {LEAST_ROUNDS} of them"
    )  # fmt: skip
    return f"{text}, with 95 % intervals by resampling over {over}. A missing answer counts as one after the timeout."


def _is_virtual(group: Sequence[Record]) -> bool:
    return any("virtual clock" in note for record in group for note in record_notes(record))


def _any(groups: Groups, asked: Iterable[Metric]) -> bool:
    return any(has_values(groups, metric) for metric in asked)


def _notes(groups: Groups, name: str) -> set[str]:
    """What measurements with values say under a name."""
    found = (m for group in groups for record in group for m in record.measurements if m.values)
    return {str(m.notes[name]) for m in found if m.notes.get(name) not in (None, "")}


def _stated(text: str, seconds: Iterable[float | None]) -> list[str]:
    """The sentence with these durations; none where there are none."""
    given = listed((_s(one) for one in dict.fromkeys(seconds) if one is not None), "or")
    return [text.format(given)] if given else []


def _span(counts: Iterable[Any]) -> str:
    found = sorted(set(counts))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _s(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else number(seconds, "s")
