"""What a static figure is made of: marks in points, and fonts."""
