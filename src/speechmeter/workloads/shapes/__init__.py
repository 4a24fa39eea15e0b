"""Shapes of utterances, (T frames, U tokens), for losses: drawn, read from a file or taken from a list, and batched."""
