"""Model adapters, one file each. A heavy import stands inside `prepare`, never at the top."""
