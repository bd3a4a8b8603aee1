"""The Roles page."""
