"""Model adapters, one file or package each. Heavy packages are imported inside `prepare`, never at the top."""
