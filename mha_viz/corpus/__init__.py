"""Annotated text: treebanks and other corpus files, and what is built in: a grammar with its lexicon, and random words
that are repeated."""

BUILT_IN = (GRAMMAR, REPEATS) = ("grammar", "repeats")  # the names of the built-in corpora
