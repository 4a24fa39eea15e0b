"""Memory through a step, and who held it at the peak."""
