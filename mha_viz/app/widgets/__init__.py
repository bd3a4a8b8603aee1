"""Controls and panels that pages share."""
