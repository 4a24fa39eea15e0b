"""Speech and translation models of the transformers library: what it has, how they are loaded, and their stages."""

from speechmeter.subjects.transformers.subject import TransformersSubject

__all__ = ["TransformersSubject"]
