"""Run directories: records appended, read, upgraded. Files written by others are data, never code."""
