"""A sentence, every head at a glance, one head in full."""

from mha_viz.ui import explore, frame, reading

frame.view()
what = explore.asked()
explore.ask(what)
attention = reading.read(what.text, what.where)
if attention is not None:
    explore.draw(what, attention)
explore.warm_up()
