"""The questions behind the product, answered in two sentences and an experiment each."""

from mha_viz.ui import frame
from mha_viz.ui.lab import questions

frame.view()
questions.show_questions()
