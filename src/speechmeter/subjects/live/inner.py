"""The model behind a policy that makes it live: `redecode:MODEL`, `by-sentence:MODEL`."""

from __future__ import annotations

from dataclasses import replace

from speechmeter.core import plugins
from speechmeter.core.axes import Axes
from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Case, Spec

_WANTED = {"sound": "audio"}


def inner_case(case: Case) -> Case:
    """The case of the model behind it, with the model's own axes at their defaults where they are not given."""
    plugin, _, source = case.subject.source.partition(":")
    if not plugin:
        name = case.subject.plugin
        raise SubjectError(f"{name} needs a model", fix=f"write {name}:MODEL, with a name of `speechmeter models`")
    subject = plugins.subject(plugin)
    given = dict(case.subject.options.get("model") or {})
    axes = {axis.name: given.pop(axis.name, axis.default) for axis in subject.axes}
    spec = Spec(plugin=plugin, name=case.subject.name, source=source, options=given)
    return replace(case, subject=spec, axes=Axes({**axes, **case.axes}))


def check_inner(case: Case, kind: str, fix: str) -> None:
    """Raise SubjectError unless the model takes this kind of input, and is sound itself."""
    inner = inner_case(case)
    subject = plugins.subject(inner.subject.plugin)
    if subject.takes and kind not in subject.takes:
        raise SubjectError(f"{inner.subject.plugin} does not take {_WANTED.get(kind, kind)} as input", fix=fix)
    if subject.runs_code:
        raise SubjectError(
            f"{case.subject.plugin} cannot be used with {inner.subject.plugin}, which runs your own code",
            fix="make your model live itself: the factory of python:FILE:FACTORY returns a generator function (see "
            "the documentation of live models)",
        )
    known = {option.name: option for option in (*subject.options, *subject.axes)}
    for name, value in (case.subject.options.get("model") or {}).items():
        if name not in known:
            raise SubjectError(
                f"unknown key {name!r} for {inner.subject.plugin!r}",
                key="model",
                fix=plugins.nearest(name, list(known)),
            )
        if (wrong := known[name].check(value)) is not None:
            raise SubjectError(f"{inner.subject.plugin}: {wrong}", key="model", fix=known[name].help or None)
    subject.check(inner)
