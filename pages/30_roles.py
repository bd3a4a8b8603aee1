"""What each head does: measured against gold annotations and baselines."""

from mha_viz.ui import frame, request
from mha_viz.ui.roles import page as roles

frame.view()
roles.show(request.page_request().where)
