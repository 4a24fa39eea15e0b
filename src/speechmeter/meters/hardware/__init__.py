"""Counters of the processor: one file a back-end. Each opens its counters, or says why it cannot."""
