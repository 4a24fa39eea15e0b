"""Configuration files of other benchmarks, read as they are and turned into plans of ours. Nothing in them is run."""
