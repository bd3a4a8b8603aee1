"""From the files of a model and a text to attention."""
