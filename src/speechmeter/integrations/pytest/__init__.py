"""Speechmeter inside a test suite: the fixture `speechmeter`, its marker and its options."""
