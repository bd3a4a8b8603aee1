"""The Inside a head page."""
