"""Charts as values, for pages and for files."""
