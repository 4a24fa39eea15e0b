"""Transducer losses of our own. Imports nothing of ours; empty so far."""
