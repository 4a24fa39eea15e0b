"""Speechmeter inside other tools (pytest, training frameworks). Empty so far."""
