"""Print the core's requirements, one a line, as pyproject.toml states them: input of `make wheels`."""

from importlib.metadata import requires

print("\n".join(line for line in requires("speechmeter") or [] if "extra ==" not in line))
