"""What the pictures show and what they do not."""

import streamlit as st

from mha_viz.ui import frame, parts

frame.view()
st.header("What the pictures show")
parts.prose("about.md")
st.header("Models")
parts.model_table()
