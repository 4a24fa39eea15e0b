"""Energy of a call: the meter, the load it makes, tracks of readings, figures; `sensors/` has one file a sensor."""
