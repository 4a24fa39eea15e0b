"""Adapters that could not be run anywhere yet. They never appear in a table of ours; empty so far."""
