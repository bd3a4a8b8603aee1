"""Small parts that several pages share."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from mha_viz.assets import asset
from mha_viz.models import catalog, hub


def prose(name: str) -> None:
    """A text of ours from ``assets/``, as Markdown."""
    st.markdown(asset(name).read_text("utf-8"), width=760)


def model_table() -> None:
    """The models that this server offers, and whether their files are here."""
    rows = [
        {
            "name": model.name,
            "model": model.label,
            "layers × heads": f"{model.layers} × {model.heads}" if model.layers else "",
            "d_model": model.d_model or None,
            "MB": model.megabytes or None,
            "files": "here" if hub.local_folder(model) else "downloaded when first chosen",
            "note": model.note,
        }
        for model in catalog.offered()
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")
