"""The Python interface, re-exported by the package itself."""
