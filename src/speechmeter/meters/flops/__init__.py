"""How much arithmetic a call does: formulas by operator, the counter, and running on shapes alone."""
