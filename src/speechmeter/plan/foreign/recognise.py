"""What a plan file is, by its keys: ours, SpeechBrain's profiling recipe, or fairseq's speech-to-speech benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from speechmeter.plan.foreign import fairseq_benchmark, speechbrain_profile
from speechmeter.plan.foreign.draft import Translation
from speechmeter.plan.overrides import Override
from speechmeter.plan.source import parse_plan, read_text

_OURS = frozenset({"models", "cascades"})


def read_plan(path: Path, overrides: Sequence[Override] = ()) -> Translation:
    """The keys of a plan file, in our words. Raises PlanError for what is neither ours nor understood."""
    text = read_text(path)
    keys = _top_keys(text)
    if not keys & _OURS:
        if keys & speechbrain_profile.KEYS:
            return speechbrain_profile.translate(text, path, overrides)
        if keys & fairseq_benchmark.KEYS:
            return fairseq_benchmark.translate(text, path, overrides)
    source = parse_plan(text, str(path), base=path.parent)
    return Translation(source=source, overrides=tuple(overrides))


def _top_keys(text: str) -> frozenset[str]:
    """The outermost keys; none of a text that is broken, for its reader to refuse. Tags are not followed."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return frozenset()
    if not isinstance(node, yaml.MappingNode):
        return frozenset()
    return frozenset(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
