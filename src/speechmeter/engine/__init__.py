"""How one case is measured: session, schedule, passes, environment. Knows stages and meters, no kind of model."""
