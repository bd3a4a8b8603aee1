"""Read a model and a text, and return attention."""
