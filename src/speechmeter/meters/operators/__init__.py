"""The operators meter: time and memory by operator, as rows and as text files."""
