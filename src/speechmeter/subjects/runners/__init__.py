"""Models that are programs: a process of their own, spoken to by lines of JSON on standard input and output."""

from speechmeter.subjects.runners.subject import RunnerSubject

__all__ = ["RunnerSubject"]
