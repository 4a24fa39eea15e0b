"""Servers that are spoken to over a network: one file for each dialect, all behind `Conversation`."""
