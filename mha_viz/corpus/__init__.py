"""Annotated text: treebanks and other corpus files, and the built-in grammar with its lexicon."""

BUILT_IN = "grammar"  # the name of the built-in corpus
