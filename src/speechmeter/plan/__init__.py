"""From YAML, flags or Python to one validated `Plan`, and from there to cases. Knows `core` only."""
