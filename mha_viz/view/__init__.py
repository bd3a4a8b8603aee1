"""The settings of drawings and the quantities that can be drawn, read from one table."""
