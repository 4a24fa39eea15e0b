"""A recording of a step or two: what ran when, in which module, as files that other tools read."""
