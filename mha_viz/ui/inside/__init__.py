"""The page on the inside of a head."""
