"""What is read off a call: one file, or one package, for each meter."""

from __future__ import annotations

from importlib.util import find_spec


def torch_missing() -> str | None:
    """Why a meter that works through torch cannot measure here; None where torch is installed."""
    return None if find_spec("torch") else "torch is not installed: pip install 'speechmeter[torch]'"
