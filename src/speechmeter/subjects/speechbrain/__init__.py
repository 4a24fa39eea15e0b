"""SpeechBrain's inference interfaces: what a directory names, how it is loaded without the network, and its stages."""

from speechmeter.subjects.speechbrain.subject import SpeechBrainSubject

__all__ = ["SpeechBrainSubject"]
