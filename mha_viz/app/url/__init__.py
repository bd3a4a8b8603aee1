"""The state of pages. All of it is in the URL."""
