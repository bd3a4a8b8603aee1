"""Annotated text: treebanks and other corpus files.

Two corpora are built in: sentences of a grammar with its own lexicon, and sequences of random words that are repeated.
"""

BUILT_IN = (GRAMMAR, REPEATS) = ("grammar", "repeats")  # the names of the built-in corpora
