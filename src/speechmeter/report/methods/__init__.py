"""`show --metric methods`: the set-up of a run in words, and how Speechmeter is cited."""
