"""Live metrics: pure functions of what was said to a system and what it answered."""

from speechmeter.analysis.live.measure import measurements

__all__ = ["measurements"]
