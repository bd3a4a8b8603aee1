"""The state of a page, all of which is in the URL."""
