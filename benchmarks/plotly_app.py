"""A minimal Streamlit app that shows one head with Plotly. The Explore page is compared with it."""

import plotly.graph_objects as go
import streamlit as st

import mha_viz


@st.cache_resource
def encoder():  # type: ignore[no-untyped-def]
    return mha_viz.load("minilm")


text = st.text_input("Sentence", "The animal didn't cross the street because it was too tired.")
attention = encoder().encode(text)
ticks = list(range(len(attention.tokens)))
figure = go.Figure(go.Heatmap(z=attention[mha_viz.Head(3, 1)], zmin=0, zmax=1, colorscale="Blues"))
figure.update_xaxes(tickvals=ticks, ticktext=attention.tokens)
figure.update_yaxes(tickvals=ticks, ticktext=attention.tokens, autorange="reversed")
st.plotly_chart(figure)
