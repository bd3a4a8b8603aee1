"""The table of everything that a person can set about a drawing, and of the quantities that can be drawn."""
