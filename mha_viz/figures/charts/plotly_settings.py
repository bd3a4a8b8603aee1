"""Plotly's settings for charts on pages."""

# Make Plotly's camera button save SVG, which a paper can use.
CONFIG = {"toImageButtonOptions": {"format": "svg", "filename": "mha_viz"}, "displaylogo": False}
# Two quick clicks on different marks must not count as a double click, which would clear the selection.
CLICK_CONFIG = {**CONFIG, "doubleClickDelay": 0}
