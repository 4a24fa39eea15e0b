"""What workloads feed and models take: a model that is fed something else would run on, and measure nothing.

A workload says it with `feeds`, a subject with `takes`, each a tuple of the words below. Plug-ins may leave it out,
and are then fed whatever the plan says.
"""

from __future__ import annotations

from speechmeter.core import plugins
from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Case

SOUND, FEATURES, TEXT, SHAPES = "sound", "features", "text", "shapes"
_WAYS_OUT = {
    SOUND: "name it with `audio:` or `data:`",
    FEATURES: "add `features:` to the plan, for example `features: {bands: 80}`",
    TEXT: "add `text:` to the plan, for example `text: {vocabulary: 1000}`",
    SHAPES: "add `shapes:` to the plan, for example `shapes: {steps: 20}`",
}


def check(case: Case) -> None:
    """Raise SubjectError when a model takes none of what its workload feeds."""
    fed: tuple[str, ...] | None = getattr(plugins.workload(case.workload.plugin), "feeds", None)
    taken: tuple[str, ...] | None = getattr(plugins.subject(case.subject.plugin), "takes", None)
    if fed is None or taken is None or set(fed) & set(taken):
        return
    raise SubjectError(
        f"{case.subject.name} takes {' or '.join(taken)}, and `{case.workload.plugin}:` feeds {' or '.join(fed)}",
        fix=_WAYS_OUT[taken[0]],
    )
