"""Where a case runs: preflight, inline or fresh processes, limits, rounds, resume. Measuring itself is `engine`'s."""
