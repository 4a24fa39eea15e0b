"""An executor for tunings whose truth is known: what a configuration takes, puts out and gets wrong follows from it.

As a program, it runs a tuning and kills itself with SIGKILL after so many records:
`simulated_tuning.py DIR TRIALS`.
"""

import hashlib
import math
import os
import random
import signal
import sys
from itertools import product
from pathlib import Path

from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.protocol import SteadyProtocol
from speechmeter.core.tuning import GOALS, Tuning, keep_of
from speechmeter.core.types import Case, Measurement, Spec
from speechmeter.engine.measure import Outcome
from speechmeter.launch.tuning import Candidates, run_tuning
from speechmeter.store.run_dir import RunWriter

AXES = {"threads": (2, 1, 4), "batch": (1, 2, 4), "quantize": ("none", "int8-dynamic")}
EFFECTS = {("threads", 1): 0.3, ("threads", 4): -0.3, ("batch", 2): -0.1, ("batch", 4): -0.25}
SD, MACHINE = 0.02, 0.05
WORDS = 40


class Simulated:
    """Seconds of a call are 1 at the default; `effects` are added logarithms, `errors` wrong words of an utterance.

    `errors`, `memory` and `fails` are functions of the axes of a case. After `kill_after` trials the process dies.
    """

    def __init__(self, effects=EFFECTS, errors=None, memory=None, fails=None, kill_after=None, sd=SD, calls=4):
        self.effects, self.sd, self.calls = effects, sd, calls
        self.errors = errors or (lambda axes: [0] * WORDS)
        self.memory = memory or (lambda axes: 2**30)
        self.fails = fails or (lambda axes: "")
        self.kill_after = kill_after
        self.asked = []

    def measure(self, case, report, extent="all", round_=0):
        if len(self.asked) == self.kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        self.asked.append((case.id, round_))
        if why := self.fails(case.axes):
            return Outcome(status="error", reason=why)
        return Outcome(status="ok", measurements=tuple(self._measured(case, round_)))

    def close(self):
        pass

    def _measured(self, case, round_):
        log = sum(self.effects.get((name, value), 0.0) for name, value in case.axes.items())
        log += random.Random(round_).gauss(0, MACHINE) + random.Random(f"{case.id} {round_}").gauss(0, self.sd)
        wrong = self.errors(case.axes)
        names = [f"u{at}" for at in range(len(wrong))]
        digests = [float(int(hashlib.sha256(f"{at} {count}".encode()).hexdigest()[:10], 16))
                   for at, count in enumerate(wrong)]  # fmt: skip
        yield Measurement.of(metrics.LATENCY, [math.exp(log)] * self.calls)
        yield Measurement.of(metrics.AUDIO_SECONDS, [10.0])
        yield Measurement.of(metrics.MEMORY_CPU_TOTAL, [float(self.memory(case.axes))])
        yield Measurement.of(metrics.ANSWERED, [1.0] * len(wrong), notes={"utterances": names})
        yield Measurement.of(metrics.WORD_ERRORS, list(map(float, wrong)), notes={"normaliser": "basic.v2"})
        yield Measurement.of(metrics.REFERENCE_WORDS, [20.0] * len(wrong), notes={"normaliser": "basic.v2"})
        yield Measurement.of(metrics.OUTPUT_SKETCH, digests, notes={"items": names, "kind": "text", "width": 1})
        yield Measurement.of(metrics.OUTPUT_NOT_FINITE, [0.0])


def tuning(goal="rtfx", keep=(), axes=AXES, **more):
    return Tuning(goal=GOALS[goal], keeps=tuple(map(keep_of, keep)), axes=axes, **more)


def cases_of(asked):
    """All combinations, the default first."""
    for values in product(*asked.axes.values()):
        axes = dict(zip(asked.axes, values, strict=True))
        yield Case(
            subject=Spec(plugin="simulated", name="simulated"), workload=Spec(plugin="audio", name="noise"),
            axes=Axes({"device": "cpu", **axes}), meters=("latency",),
            protocol=SteadyProtocol(warmup=1, samples=4, min_samples=2, budget_s=1.0),
        )  # fmt: skip


def tuned(folder, place, asked=None, events=None, **fields):
    """The state at the end of a tuning in this folder, which is continued where it holds one."""
    asked = asked or tuning()
    candidates = Candidates(cases=list(cases_of(asked)), tuning=asked, **fields)
    with RunWriter(Path(folder)) as store:
        store.begin("")
        return run_tuning(candidates, place, store, (lambda event: None) if events is None else events.append)


if __name__ == "__main__":
    tuned(sys.argv[1], Simulated(kill_after=int(sys.argv[2])))
