"""FLOPs as the processor itself counts them: the meter, and the ways to reach the counters."""
