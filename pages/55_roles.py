"""What each head does: measured against gold annotations and baselines."""

from mha_viz.ui import address, frame
from mha_viz.ui.roles import page as roles

frame.view()
roles.show_roles(address.url().where)
