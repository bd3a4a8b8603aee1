"""Annotated text: treebanks and other corpus files, and the built-in grammar with its lexicon."""

BUILT_IN = "grammar"  # what the built-in corpus is called
