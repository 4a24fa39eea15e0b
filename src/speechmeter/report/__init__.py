"""Records to tables. Renderers format and never compute: figures come from `analysis.estimate`."""
