"""Inside a head: every step from x to the output, with the numbers of one sentence; what the block costs."""

from mha_viz.ui import explore, frame, inside

frame.view()
what = explore.asked()
explore.ask(what)
inside.show(what)
