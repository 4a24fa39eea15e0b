"""What does this speech model cost? `measure`, `run`, `load` and `compare`, and the types they return.

Everything is imported when it is first used, so that the command starts fast and `import speechmeter` needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Prepared",
    "Profile",
    "Result",
    "Run",
    "SpeechmeterError",
    "Stage",
    "Tuned",
    "__version__",
    "compare",
    "export",
    "label",
    "load",
    "measure",
    "profile",
    "profile_analyst",
    "profile_optimiser",
    "run",
    "schedule",
    "tune",
]

if TYPE_CHECKING:
    from speechmeter.api.comparing import Comparison, compare
    from speechmeter.api.live import Result, measure
    from speechmeter.api.loaded import Run, load
    from speechmeter.api.profiling.decorators import export, profile, profile_analyst, profile_optimiser, schedule
    from speechmeter.api.profiling.result import Profile
    from speechmeter.api.runs import run
    from speechmeter.api.tuning import Tuned, tune
    from speechmeter.core.errors import SpeechmeterError
    from speechmeter.core.protocols import Prepared
    from speechmeter.core.types import Stage
    from speechmeter.meters.recording.label import label

_HOMES = {
    "compare": "speechmeter.api.comparing",
    "Comparison": "speechmeter.api.comparing",
    "measure": "speechmeter.api.live",
    "Result": "speechmeter.api.live",
    "run": "speechmeter.api.runs",
    "load": "speechmeter.api.loaded",
    "Run": "speechmeter.api.loaded",
    **dict.fromkeys(
        ("profile", "profile_analyst", "profile_optimiser", "schedule", "export"),
        "speechmeter.api.profiling.decorators",
    ),
    "Profile": "speechmeter.api.profiling.result",
    "tune": "speechmeter.api.tuning",
    "Tuned": "speechmeter.api.tuning",
    "SpeechmeterError": "speechmeter.core.errors",
    "Prepared": "speechmeter.core.protocols",
    "Stage": "speechmeter.core.types",
    "label": "speechmeter.meters.recording.label",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'speechmeter' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What tab completion offers: every public name, though most are not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
