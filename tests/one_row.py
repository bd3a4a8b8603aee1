"""Add a quantity, a measure per head and a verb in one place each, and find them everywhere in the app.

They are added before the app is imported, because it reads its tables on import, and also in the reader that it starts.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mha_viz import extensions
from mha_viz.analysis.metrics import PerHead
from mha_viz.app.service.reader import verbs
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import Step, StepData, make_first_steps
from mha_viz.models.reading.loading import AnyModel
from mha_viz.request import Request
from mha_viz.study import reading
from mha_viz.view.quantities import Quantity

if TYPE_CHECKING:
    from mha_viz.app.service.reader.models import Models

TEXT = "The cat sat ."
DOUBLED = Quantity(
    "doubled", "doubled weight", "Doubled attention", "Twice the weight; rows sum to 2.", "doubled, twice the weight",
    "lengths", step="doubled", code="doubled({encoder}, {text})",
)  # fmt: skip


def doubled(model: AnyModel, request: Request, _: Any) -> Attention:
    """Return twice the weights."""
    whole = model.encode(*request.texts)
    return replace(
        whole, weights=2 * whole.weights, quantity="doubled", made=make_first_steps((), Step(StepData("doubled")))
    )


def corner(attention: Attention) -> PerHead:
    """The weight from the first token to itself."""
    return attention.weights[:, :, 0, 0].astype(np.float64)


def layers_of(models: Models, request: Request) -> int:
    """Return the number of layers."""
    return models[request.model].layers


def add() -> None:
    """Add the quantity, the measure and the verb."""
    extensions.add_quantity(DOUBLED, doubled)
    extensions.register_metric("weight of the first token on itself")(corner)
    verbs.VERBS = MappingProxyType({**verbs.VERBS, "layers_of": layers_of})


def check_quantity(folder: Path) -> None:
    """Check that the quantity is offered everywhere.

    It must be in a figure, caption, file, recipe, link and saved reading, on the command line, in the process with the
    models, and on the pages' menus, pictures and links.
    """
    import mha_viz as mv
    from mha_viz.cli import main
    from mha_viz.figures.layout import Size, figure_code
    from mha_viz.figures.layout.view import View
    from tests.page_session import PageSession

    encoder = mv.load("toy")
    request = Request("toy", TEXT, quantity="doubled")
    attention = reading.read(encoder, request)
    assert abs(float(attention.weights[0, 0, 0].sum()) - 2) < 1e-5
    drawn = attention.heatmap("L0H0")
    assert DOUBLED.about in drawn.drawing.full_caption
    drawn.save(folder / "a.csv")
    assert "doubled" in (folder / "a.csv").read_text("utf-8")
    assert "doubled(mv.load('toy'), 'The cat sat .')" in figure_code.write_head_code(
        attention, "heatmap", [Head(0, 0)], View(), Size(), "a.svg"
    )
    assert request.parameters()["shown"] == "doubled"
    assert mv.load_attention(attention.save(folder / "a.npz")).key == attention.key
    assert main(["attention", TEXT, "--model", "toy", "--quantity", "doubled", "--out", str(folder / "b.npz")]) == 0
    assert mv.load_attention(folder / "b.npz").quantity == "doubled"
    url = {"model": "toy", "text": TEXT, "shown": "doubled"}
    page, compared = PageSession(url), PageSession(url | {"show": "layer"}, "pages/20_compare.py")
    assert page.shown().header["quantity"] == "doubled"
    assert page.url["shown"] == "doubled"
    assert DOUBLED.about in page.said
    assert '"label":"doubled weight"' in page._drawn()["mha_explorer"].js_content.replace(": ", ":")  # its menu
    assert compared.at.selectbox(key="shown").value == "doubled"
    assert "doubled weight" in compared.at.selectbox(key="shown").options


def check_measure(folder: Path) -> None:
    """Check that the measure is in a reading's table, in the data of a page, and as a mean in a study's table."""
    import mha_viz as mv
    from tests.page_session import PageSession

    attention = mv.load("toy").encode(TEXT)
    assert attention.measures()["corner"]["L0H0"] == attention.weights[0, 0, 0, 0]
    sentences = ("The cat sat .", "The dog that barked ran .")
    (folder / "two.txt").write_text("\n".join(sentences), "utf-8")
    table = mv.profile(folder / "two.txt", "toy").tables["measures"]
    readings = [mv.load("toy").encode(text).weights[:, :, 0, 0] for text in sentences]
    assert "corner" in set(table["measure"])  # metrics.py may have others
    means = table[table["measure"] == "corner"]
    np.testing.assert_allclose(means["mean"], np.mean(readings, axis=0).ravel(), rtol=1e-6)
    assert set(means["sentences"]) == {2}
    shown = PageSession({"model": "toy", "text": TEXT}).shown().header["metrics"]
    assert "weight of the first token on itself" in [one["label"] for one in shown]


def check_verb() -> None:
    """Check that a page can use the verb, through the process with the models."""
    from mha_viz.app.service.caches import get_model_service

    assert get_model_service().ask_cached(layers_of, Request("toy", TEXT)).result() == 2


def check_all(folder: Path) -> None:
    """Check the three additions in pages whose reader imports the libraries itself."""
    use_separate_reader()
    check_quantity(folder)
    check_measure(folder)
    check_verb()


def use_separate_reader() -> None:
    """Make pages use a reader that imports the libraries itself, instead of a copy of this process."""
    from mha_viz.app.service import caches
    from mha_viz.app.service.reader import Reader

    import_module("tests.page_session")  # it makes readers copies of this process
    caches._get_reader = caches.Once(Reader)
