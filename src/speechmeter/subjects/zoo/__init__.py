"""The zoo: speech encoders at their published sizes, written in plain torch, with random weights.

`entries` holds the subjects that a plan names by a bare word and imports no torch; each family has a file of its own.
"""
