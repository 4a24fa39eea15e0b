"""`profile.yaml` of SpeechBrain's profiling recipe: a pretrained interface over seconds × batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from speechmeter.core.errors import PlanError
from speechmeter.plan.foreign.draft import Draft, Translation
from speechmeter.plan.foreign.tags import TagKeeper, Values
from speechmeter.plan.source import KeyPath, Override, parse_plan

KEYS = frozenset({"pretrained_model", "pretrained_model_source", "profiling_dimensions"})
"""A file with one of these outermost keys is such a recipe."""
_DIMENSIONS = "profiling_dimensions"
_KNOWN = (
    *KEYS,
    "pretrained_model_type",
    "audio_mockup_secs",
    "batch_sizes",
    "example_audio",
    "triangle_only",
    "export_logs",
    "device",
)
_SCHEDULE = {"wait": 1, "warmup": 2, "active": 7, "repeat": 1}
"""The recipe's ten calls, of which the last seven are recorded."""
_SAVED = "pretrained_models"
"""The folder in which the recipe keeps what it downloaded, by hub name."""


def translate(text: str, path: Path, overrides: Sequence[Override]) -> Translation:
    """The recipe as a plan. Raises PlanError, with the line, for a value that it needs and cannot be understood."""
    foreign = parse_plan(text, str(path), base=path.parent, loader=TagKeeper)
    recipe = _Recipe(Draft(foreign, overrides), Values(foreign, str(path)), path.parent)
    return recipe.translation()


class _Recipe:
    def __init__(self, draft: Draft, values: Values, base: Path) -> None:
        self._draft = draft
        self._values = values
        self._base = base

    def translation(self) -> Translation:
        if not self._draft.flagged("models"):
            self._model()
        for key, ours, default in (
            ("audio_mockup_secs", "seconds", [1, 2]),
            ("batch_sizes", "batch", [1, 2]),
            ("triangle_only", "triangle", True),
        ):
            value, origin = self._dimension(key)
            self._draft.put(ours, default if value is None else value, origin)
        value, origin = self._dimension("device")
        if value is not None:
            self._draft.put("device", value, origin)
        if not self._draft.flagged("audio"):
            self._audio()
        self._draft.put("meters", ["latency", "memory", "operators", "split"])
        self._draft.put("markdown", ["rtf", "memory"])
        if not self._draft.flagged("repeats"):
            self._draft.put("schedule", dict(_SCHEDULE))
        logs, origin = self._dimension("export_logs")
        if logs is not None:  # the recipe writes a Chrome trace and stacks for flame graphs; so does `trace`
            self._draft.put("trace", logs, origin)
        self._left_over()
        return self._draft.translation()

    def _dimension(self, key: str) -> tuple[Any, KeyPath]:
        """A value of `profiling_dimensions`, else of the outermost level, and its path."""
        nested: KeyPath = (_DIMENSIONS, key)
        if (value := self._values.get(nested)) is not None:
            return value, nested
        return self._values.get((key,)), (key,)

    def _model(self) -> None:
        source, origin = self._either("source")
        kind, kind_origin = self._either("type")
        if source is None:
            raise PlanError(
                "the recipe has no model",
                where=self._draft.foreign.origin(("pretrained_model",)),
                fix="add `pretrained_model: {source: …, type: …}`, or use `models`",
            )
        if not isinstance(source, str) or not source:
            raise PlanError(
                f"source takes a directory, not {source!r}",
                where=self._draft.foreign.origin(origin),
                fix="use the path of a directory",
            )
        # a folder, the recipe's own download, or else a model of the hub, which the plug-in looks for
        load, saved = f"speechbrain:{source}", f"{_SAVED}/{source}"
        if self._found(source) is None and self._found(saved) is not None:
            self._draft.note(f"{source!r} is loaded from {saved!r}, where the recipe saves it", origin)
            load = f"speechbrain:{saved}"
        entry = {"name": source.rstrip("/").rpartition("/")[2] or source, "load": load}
        self._draft.put("models", [entry | ({"type": kind} if kind is not None else {})])
        self._draft.trace(("models", 0), origin)
        self._draft.trace(("models", 0, "type"), kind_origin)

    def _either(self, key: str) -> tuple[Any, KeyPath]:
        """`pretrained_model.source`, or `pretrained_model_source`."""
        nested: KeyPath = ("pretrained_model", key)
        if (value := self._values.get(nested)) is not None:
            return value, nested
        flat = (f"pretrained_model_{key}",)
        return self._values.get(flat), flat

    def _audio(self) -> None:
        value, origin = self._dimension("example_audio")
        if value is None or value == "None":
            self._draft.put("audio", "noise", origin)
        elif isinstance(value, str) and self._found(value) is None:
            self._draft.note(
                f"example_audio {value!r} was not found: the sample that ships with the package is used instead", origin
            )
            self._draft.put("audio", "sample", origin)
        else:
            self._draft.put("audio", value, origin)

    def _found(self, name: str) -> Path | None:
        """A file or folder, seen from the recipe's folder or from here."""
        return next((path for path in (self._base / name, Path(name)) if path.exists()), None)

    def _left_over(self) -> None:
        """A line for each key that says something we do not do."""
        inner = self._draft.foreign.data.get(_DIMENSIONS)
        paths: list[KeyPath] = [(_DIMENSIONS, str(key)) for key in (inner if isinstance(inner, dict) else ())]
        paths += [(str(key),) for key in self._draft.foreign.data if str(key) not in self._values.used]
        for path in paths:
            if path[-1] not in _KNOWN:
                self._draft.note(f"{path[-1]!r} has no equivalent here and is ignored", path)
