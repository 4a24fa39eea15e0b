"""One profiler recording for all meters that read it: what is recorded, its events, and whose time each one is."""
