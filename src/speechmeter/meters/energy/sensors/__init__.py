"""Power and energy sensors: one file a sensor. Each finds itself, or says why it is not there."""
