"""Result files of other tools, read as cases: one file for each tool, which takes what it knows and nothing else."""
