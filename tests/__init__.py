"""The tests are one package, so that they can share the corpus of hostile input."""
