"""Where a study is measured: on this machine, or by the machines of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from speechmeter.launch.cluster import Machines, Requirements, find_machines
from speechmeter.plan.study import Study

Launcher = Literal["subprocess", "inline", "ray"]
LAUNCHERS: tuple[Launcher, ...] = ("subprocess", "inline", "ray")


@contextmanager
def crew_for(study: Study, launcher: Launcher, address: str | None, *, offline: bool) -> Iterator[Machines | None]:
    """The machines of a cluster, all of them asked about every case; None where this machine measures.

    Raises InputError without a cluster, and for a case that fits none of its machines.
    """
    if launcher != "ray":
        yield None
        return
    from speechmeter.launch import ray

    plan = study.plan
    requirements = Requirements(
        cases=study.cells.cases,
        limits=plan.limits.value(),
        kinds={str(device): kind for device, kind in plan.kind.items()},
        offline=offline,
        speech=plan.speech_files(),
        trace=plan.trace_options(),
        origin=study.place,
    )
    with ray.opened(address) as cluster:
        yield find_machines(cluster, requirements)
