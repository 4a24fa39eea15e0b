"""One self-contained HTML page of some runs."""
