"""Figures of a run in experiment trackers: one file for each tracker, imported when it is asked for."""
