"""Speechmeter inside other tools: callbacks of training frameworks."""
