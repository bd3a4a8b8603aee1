"""Annotated text: treebanks and other corpus files, and the built-in grammar with its lexicon."""
