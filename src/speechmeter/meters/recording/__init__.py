"""One recording by torch's profiler for each case and round, which every meter that needs one reads."""
