"""A sentence, every head at a glance, one head in full."""

from mha_viz.ui import explore, frame

frame.view()
what = explore.asked()
explore.ask(what)
attention = explore.read(what)
if attention is not None:
    explore.draw(what, attention)
explore.warm_up()
