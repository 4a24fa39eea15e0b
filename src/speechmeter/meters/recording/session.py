"""The recording of a session: made when the first meter asks for it, read by all that follow. Imports torch late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import Any, Protocol, runtime_checkable

from speechmeter.core import plugins
from speechmeter.core.protocol import Steps, in_turn
from speechmeter.core.protocols import Session
from speechmeter.core.stages import step
from speechmeter.core.types import SAMPLED, Batch, by_turns
from speechmeter.meters.recording.label import CALL, STAGE
from speechmeter.meters.recording.recording import Needs, Recording

_SHARED = "recording"
_MOST_CALLS, _LEAST_CALLS = 5, 3
"""The profiler keeps every operator and kernel of every call: a loss without fused kernels has thousands of them."""
_MOST_EVENTS = 500_000
"""For a schedule, which may ask for any number of calls. So many took 1 to 1.5 GB, and most of a minute to read."""
_MOST_NS = 20 * 10**9
"""No more calls than fit into this time, judged by the first one: a long call has many events, and one is enough."""


@runtime_checkable
class ReadsRecording(Protocol):
    """A meter that reads the recording which all such meters share."""

    def needs(self, session: Session) -> Needs:
        """What must be recorded for it in this session."""
        ...


def recording_of(session: Session, own: Needs) -> Recording:
    """The one recording of this process. It holds what `own` names and what all meters of the case need.

    A meter that the case does not list may need more than was recorded: then there is another recording.
    """
    found: Recording | None = session.shared.get(_SHARED)
    if found is not None and found.needs | own == found.needs:
        return found
    needs = own
    # Meters that run in the first round alone are asked in every round, so that all rounds are recorded alike: another
    # recording takes another time, and rounds are averaged.
    for meter in map(plugins.meter, session.case.meters):
        if isinstance(meter, ReadsRecording) and meter.unavailable(session.case) is None:
            needs |= meter.needs(session)
    steps = Steps.of(session.case.protocol, len(session.all_batches))
    if steps is None:
        # The first batches in turn, in whole passes where they are few; a slow call is made less often.
        count = max(needs.traced, usual_count(session) if needs.means else 1)
        calls = _Calls(batches=[number % len(session.batches) for number in range(count)])
    else:
        calls = _scheduled_calls(session, steps, needs)
    made = _recorded(session, needs, calls)
    session.shared[_SHARED] = made
    return made


def one_more_call(session: Session, needs: Needs) -> Recording:
    """A recording of one call, for a meter that needs what would make the calls of all others longer."""
    return _recorded(session, needs, _Calls(batches=[0]))


@dataclass(frozen=True, kw_only=True)
class _Calls:
    """The calls of a recording, by the index of their batch; why there are no more, and notes on their order."""

    batches: Sequence[int]
    shortened: str = ""
    sampled: Mapping[str, Any] = field(default_factory=dict)


def _recorded(session: Session, needs: Needs, calls: _Calls) -> Recording:
    from speechmeter.meters.recording.profiler import recorded

    session.progress(f"profile: {len(calls.batches)} calls")
    session.sync()
    found = recorded(
        partial(session.call, session.batches[calls.batches[0]]),
        [partial(_marked_call, session, session.batches[index], number) for number, index in enumerate(calls.batches)],
        chosen_roots(session),
        needs,
        cuda=session.case.device.is_cuda,
        patterns=session.case.protocol.filter,
    )
    return replace(found, shortened=calls.shortened, sampled=calls.sampled)


def _scheduled_calls(session: Session, steps: Steps, needs: Needs) -> _Calls:
    """The active steps, after those that wait and warm up before the first of them.

    What a schedule waits between its cycles is left out: the profiler is running, and would record that too.
    """
    from speechmeter.meters.recording.profiler import count_events

    for number in range(1, steps.lead):  # the first call was step 0
        session.call(session.all_batches[number % steps.batches])
    asked = list(steps.indices if needs.means else steps.indices[: max(1, needs.traced)])
    asked += [number % len(session.batches) for number in range(len(asked), needs.traced)]
    if len(asked) > _MOST_CALLS:
        call = partial(_marked_call, session, session.batches[0], 0)
        events = count_events(call, chosen_roots(session), needs, cuda=session.case.device.is_cuda)
        if events * len(asked) > _MOST_EVENTS:
            count = min(max(_LEAST_CALLS, _MOST_EVENTS // events), in_turn(asked))
            most = f"a call has {events:,} events, and at most {_MOST_EVENTS:,} are recorded"
            return _Calls(batches=asked[:count], shortened=f"{count} of {len(asked)} steps were recorded: {most}")
    out_of_turn = in_turn(asked) < len(asked)
    return _Calls(batches=asked, sampled={**by_turns(session.batches), SAMPLED: asked} if out_of_turn else {})


def usual_count(session: Session) -> int:
    """How many calls are recorded where no schedule says so, by what the first one cost."""
    most = min(_MOST_CALLS, max(1, _MOST_NS // max(1, session.first_ns)))
    count = min(most, len(session.batches))
    return count * max(1, min(ceil(_LEAST_CALLS / count), most // count))


def turns(session: Session, recording: Recording) -> dict[str, Any]:
    """The note on batches by turns, where every batch was called equally often; else nothing."""
    whole = recording.steps % len(session.batches) == 0 and not recording.sampled
    return by_turns(session.batches) if whole else {}


def _marked_call(session: Session, batch: Batch, number: int) -> None:
    """Run the chain once, every clocked stage in ranges of its own that name it and the number of the call."""
    from speechmeter.meters.recording.profiler import OPEN

    outputs: list[Any] = [batch]
    for stage in session.stages:
        if stage.clocked:
            with OPEN(f"{CALL}{number}"), OPEN(STAGE + stage.name):
                step(stage, outputs)
        else:
            step(stage, outputs)
    session.sync()


def chosen_roots(session: Session) -> Mapping[str, Any]:
    """The torch modules that the subject names; where it names none, those that its stages do."""
    import torch

    named = session.prepared.modules or {k: v for stage in session.stages for k, v in stage.modules.items()}
    return {name: module for name, module in named.items() if isinstance(module, torch.nn.Module)}
