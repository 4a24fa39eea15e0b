"""What workloads feed and models take: a model that is fed something else would run on, and measure nothing.

A workload says it with `feeds`, a subject with `takes`, each a tuple of the words below. A workload that feeds one
thing or another, as its data is, tells which one with a method `fed(case)`. Plug-ins may leave all of this out, and are
then fed whatever the plan says.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from speechmeter.core import plugins
from speechmeter.core.errors import InputError, SubjectError
from speechmeter.core.types import Case

SOUND, FEATURES, TEXT, SHAPES = "sound", "features", "text", "shapes"
_WAYS_OUT = {
    SOUND: "name it with `audio:` or `data:`",
    FEATURES: "add `features:` to the plan, for example `features: {bands: 80}`",
    TEXT: "add `text:` to the plan, for example `text: {vocabulary: 1000}`",
    SHAPES: "add `shapes:` to the plan, for example `shapes: {steps: 20}`",
}


@dataclass(frozen=True, kw_only=True)
class Fed:
    """What the workload of one case feeds: one of the words above, several while that is open; and features' bands."""

    kinds: tuple[str, ...]
    bands: int | None = None


def fed_by(case: Case) -> Fed | None:
    """What a case's workload feeds; None where nothing is known of it, as between the stages of a cascade."""
    if case.workload.plugin not in plugins.names(plugins.WORKLOADS):
        return None
    workload = plugins.workload(case.workload.plugin)
    if (tell := getattr(workload, "fed", None)) is not None:
        with suppress(InputError):  # data that cannot be used: the workload's own check says why
            found: Fed = tell(case)
            return found
    kinds: tuple[str, ...] | None = getattr(workload, "feeds", None)
    return None if kinds is None else Fed(kinds=kinds)


def check(case: Case) -> None:
    """Raise SubjectError when a model takes none of what its workload feeds."""
    fed = fed_by(case)
    taken: tuple[str, ...] | None = getattr(plugins.subject(case.subject.plugin), "takes", None)
    if fed is None or taken is None or set(fed.kinds) & set(taken):
        return
    feeds = " or ".join(fed.kinds)
    raise SubjectError(
        f"{case.subject.name} takes {' or '.join(taken)}, and `{case.workload.plugin}:` feeds {feeds}",
        fix=_WAYS_OUT[taken[0]],
    )
