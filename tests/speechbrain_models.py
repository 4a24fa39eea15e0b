"""Small SpeechBrain models, one of each interface, and the cases that name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conftest import make_case

from speechmeter.core.types import Case, Spec

MODELS = Path(__file__).parent / "fixtures/speechbrain"


def speechbrain_case(source: Path, **options: Any) -> Case:
    return make_case(subject=Spec(plugin="speechbrain", name="model", source=str(source), options=options))
