"""Find the files of a model by its name."""
