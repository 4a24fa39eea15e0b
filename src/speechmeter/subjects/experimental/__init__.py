"""Adapters that could not be run anywhere yet. They never appear in a table of ours.

Transducer losses without a package for a current torch: written from their sources, and held against the oracle before
anything of theirs is timed, as every loss is.
"""
