"""The command `speechmeter`: one file a command. Only here is anything printed, and only here does anything exit."""
