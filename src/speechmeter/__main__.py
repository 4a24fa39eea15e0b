"""`python -m speechmeter` is the command `speechmeter`."""

from speechmeter.cli.main import main

main()
