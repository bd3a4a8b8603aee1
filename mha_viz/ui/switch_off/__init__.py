"""The Switch off page."""
