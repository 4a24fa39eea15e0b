"""Transducer losses as subjects: ours and others', each held against the oracle before it is measured."""
