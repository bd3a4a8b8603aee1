"""Show the role of each head, measured against gold annotations and baselines."""

from mha_viz.app.roles import page as roles
from mha_viz.app.url import address
from mha_viz.app.widgets import frame

frame.ensure_frame()
roles.show_roles(address.get_url().location)
