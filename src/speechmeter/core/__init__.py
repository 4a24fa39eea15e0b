"""Frozen types, metric definitions, protocols and errors. Standard library only."""
