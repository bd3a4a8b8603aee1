"""What each head does: measured against gold annotations and baselines."""

from mha_viz.ui import explore, frame, roles

frame.view()
roles.show(explore.asked().where)
