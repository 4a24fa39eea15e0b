"""Energy of a call: the meter, its figures, readings over time, and the sensors that it reads."""
