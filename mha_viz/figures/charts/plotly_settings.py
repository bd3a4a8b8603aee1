"""How Plotly shows charts on pages."""

# Plotly's own camera button saves a format that a paper can use.
CONFIG = {"toImageButtonOptions": {"format": "svg", "filename": "mha_viz"}, "displaylogo": False}
# Two quick clicks on different marks must not count as a double click, which would clear the selection.
CLICKED = {**CONFIG, "doubleClickDelay": 0}
ABOVE = 36  # pixels for Plotly's buttons
