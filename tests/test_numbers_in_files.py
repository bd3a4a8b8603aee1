"""Check that a file calls ``weight`` what the model computed: against plain transformers, over all formats and ways
to a file, for whatever can be done to a reading."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors.numpy import load as tensors_in

import mha_viz as mv
from mha_viz.attention import Attention, Head
from mha_viz.attention.numbers import name_array, name_numbers
from mha_viz.attention.steps import GUESSED_AXES, TYPED, WEIGHTS_ONLY, WRITTEN, Step, StepData, find_model_head
from mha_viz.attention.tensors import merge_to_words
from mha_viz.cli import main
from mha_viz.figures import files, kinds
from mha_viz.figures.files.figure_numbers import Shown
from mha_viz.models.reading.encoder import Encoder
from mha_viz.request import METHODS
from mha_viz.request import TEXT as TEXT_METHOD
from mha_viz.view.quantities import QUANTITIES
from tests.oracles import collect_attentions, load_plain
from tests.packets import unpack, unpack_panels

TEXT = "The animal didn't cross the street because it was too tired."  # has words of several pieces
OTHER = "The farmer didn't cross the garden because she was too weak."  # as many words, for patching
HEAD = Head(3, 1)
Cell = tuple[int, int, int, int]  # layer, head, query, key
Cells = dict[Cell, float]
HALF = ["--dtype", "float16"]
Numbers = npt.NDArray[np.float64]


class Even(mv.Tap):
    """Changes what a head of layer 1 looks at."""

    def layer(self, index: int, query: Any, key: Any, value: Any, output: Any) -> Any:
        if index == 1:
            self.weights[1, 2] = 1 / key.shape[2]
            output[:, :, 2] = value[:, 2].mean(dim=1, keepdim=True)
        return output


@pytest.fixture(scope="module")
def weights(minilm: Encoder) -> Numbers:
    """[layer, head, query, key] by transformers alone."""
    assert minilm.folder is not None
    model, tokenizer = load_plain(minilm.folder)
    with torch.inference_mode():
        outputs = model(**tokenizer(TEXT, return_tensors="pt"), output_attentions=True)
    return torch.stack([layer[0] for layer in collect_attentions(model, outputs)]).double().numpy()


@pytest.fixture(scope="module")
def readings(minilm: Encoder) -> dict[str, Attention]:
    """List what a model and its users can make of a text, by what was done."""
    a = minilm.encode(TEXT)
    made = {"plain": a, "only": a.only(["L3H1", "L5H11"]), "hidden": a.without_special(), "words": a.by_words()}
    made |= {"words, hidden": a.by_words().without_special(), "hidden, words": a.without_special().by_words()}
    for how in METHODS:
        if how not in ("mean", "resample"):  # which read many sentences
            of = {"source": OTHER} if how == TEXT_METHOD else {}
            made[f"ablated, {how}"] = mv.ablate(minilm, ["L0H2"], TEXT, method=how, **of)
    made["ablated, words, hidden"] = made["ablated, zero"].by_words().without_special()
    made["changed"] = minilm.through(TEXT, tap=Even)[0]
    made |= {
        "norm": mv.quantities.norm_weighted(minilm, TEXT),
        "rollout": mv.quantities.rollout(a),
        "unexplained": mv.quantities.unexplained(a),
    }
    made["gradient"] = mv.quantities.gradient_weighted(minilm, TEXT, other=OTHER)
    assert {of.quantity for of in made.values()} == QUANTITIES.keys()
    made["half"] = mv.load("minilm", dtype="bfloat16").encode(TEXT)
    return made


def is_computed(name: str) -> bool:
    return name in ("plain", "only", "half")


# ---- What files call weights -----------------------------------------------------------------------------------------


def in_table(data: bytes) -> tuple[Cells, list[dict[str, str]], list[str]]:
    """The cells that a CSV file calls weight, its rows, and the names of its columns."""
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    found: Cells = {}
    for row in rows:
        if row.get("weight"):
            layer, head, query, key = (int(row[name]) for name in ("layer", "head", "query_index", "key_index"))
            found[layer, head, query, key] = float(row["weight"])
    return found, rows, list(rows[0])


def fields_of(data: bytes, suffix: str) -> dict[str, Any]:
    """The fields of any other file by their names."""
    if suffix == ".npz":
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return {name: file[name] for name in file}
    if suffix == ".json":
        return dict(json.loads(data))
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    lists = {name: json.loads(text) for name, text in metadata.items() if text.startswith('["')}
    return metadata | lists | tensors_in(data)


def of_reading(data: bytes, suffix: str, reading: Attention) -> Cells:
    """The cells that a file of a reading calls weights."""
    if suffix == ".csv":
        return in_table(data)[0]
    fields = fields_of(data, suffix)
    assert name_array(reading.quantity, reading.made) in fields
    found = np.asarray(fields.get("weights", np.zeros((0, 0, 0, 0))))
    return {
        (*find_model_head(reading.made, Head(layer, head)), query, key): float(value)
        for (layer, head, query, key), value in np.ndenumerate(found)
    }


def of_figure(data: bytes, suffix: str, shown: tuple[Shown, ...]) -> Iterator[tuple[Cell, float]]:
    """Read them from a figure, for each of its panels."""
    if suffix == ".csv":
        yield from in_table(data)[0].items()
        return
    fields = fields_of(data, suffix)
    for number, of in enumerate(shown, 1):
        panel = fields["panels"][number - 1] if "panels" in fields else fields
        named = [name for name in (f"panel{number}_weights", f"panel{number}.weights", "weights") if name in panel]
        for name in named:
            found = np.asarray(panel[name]).reshape(len(of.heads), len(of.rows), len(of.cols))
            for (head, row, col), value in np.ndenumerate(found):
                yield (*find_model_head(of.made, of.heads[head]), of.row_index[row], of.col_index[col]), float(value)


def close(found: Cells, weights: Numbers, error: float = 1e-5) -> None:
    for cell, value in found.items():
        assert math.isclose(value, weights[cell], abs_tol=error), cell


# ---- Readings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", files.suffixes())
def test_what_a_saved_reading_calls_weight_the_model_computed(
    readings: dict[str, Attention], weights: Numbers, suffix: str
) -> None:
    for name, reading in readings.items():
        found = of_reading(files.to_bytes(reading, suffix), suffix, reading)
        assert bool(found) == is_computed(name), name
        close(found, weights, 0.02 if name == "half" else 1e-5)


@pytest.mark.parametrize("suffix", files.suffixes())
def test_a_saved_reading_says_what_was_done_and_of_which_model(readings: dict[str, Attention], suffix: str) -> None:
    of_model = "sentence-transformers/all-MiniLM-L6-v2"
    for name, reading in readings.items():
        data = files.to_bytes(reading, suffix)
        if suffix == ".csv":
            rows, columns = in_table(data)[1:]
            number, dtype = name_numbers(reading.quantity, reading.made), ", bfloat16" * (name == "half")
            assert rows[0]["of_model"] == f"{of_model} (weights SHA-256 53aa5117…{dtype})"
            assert (rows[0]["quantity"], rows[0]["made"], columns[6]) == (number, "; ".join(reading.made), number)
        else:
            fields = fields_of(data, suffix)
            made = list(map(str, fields["made"]))
            assert (str(fields["model"]), made) == (of_model, list(map(str, reading.made)))
            assert str(fields["revision"]) == reading.revision


def test_numbers_have_the_name_of_what_was_done(readings: dict[str, Attention]) -> None:
    names = {name: name_numbers(reading.quantity, reading.made) for name, reading in readings.items()}
    assert names == {
        "plain": "weight", "only": "weight", "half": "weight", "hidden": "weight_rescaled", "words": "weight_by_words",
        "words, hidden": "weight_by_words_rescaled", "hidden, words": "weight_rescaled_by_words",
        "ablated, zero": "weight_ablated", "ablated, uniform": "weight_ablated", "ablated, recipe": "weight_ablated",
        "ablated, text": "weight_patched", "ablated, words, hidden": "weight_ablated_by_words_rescaled",
        "changed": "weight_changed", "norm": "norm", "rollout": "rollout", "unexplained": "unexplained",
        "gradient": "gradient",
    }  # fmt: skip
    by_hand = mv.Attention("m", "", readings["plain"].queries, readings["plain"].weights, made=("smoothed",))  # type: ignore[arg-type]
    assert name_numbers("weight", by_hand.made) == "weight_changed"


@pytest.mark.parametrize("step", [WEIGHTS_ONLY, *GUESSED_AXES.values(), Step(StepData(WRITTEN, source="x"))])
def test_a_step_that_alters_no_number_leaves_its_name(step: Step) -> None:
    assert name_numbers("weight", (TYPED, step)) == "weight"


# ---- Figures --------------------------------------------------------------------------------------------------------

VIEWS = [
    {"unit": unit, "special": special} for unit, special in product(("pieces", "words"), ("keep", "hide", "rescale"))
]
FIGURES: dict[str, Callable[..., Any]] = {
    "heatmap": lambda a, **view: kinds.heatmap(a, a.every_head()[-1], **view),
    "links": lambda a, **view: kinds.links(a, a.every_head()[0], **view),
    "grid": lambda a, **view: kinds.grid(a, layers=[0], **view),
    "compare": lambda a, **view: kinds.compare([(a, a.every_head()[0]), (a, a.every_head()[-1])], **view),
}


@pytest.mark.parametrize("suffix", files.shown_suffixes())
@pytest.mark.parametrize("kind", FIGURES)
def test_what_the_numbers_of_a_figure_call_weight_the_model_computed(
    readings: dict[str, Attention], weights: Numbers, kind: str, suffix: str
) -> None:
    for (name, reading), view in product(readings.items(), VIEWS):
        figure = FIGURES[kind](reading, **view)
        numbers = figure.numbers()
        shown = numbers.panels if hasattr(numbers, "panels") else (numbers,)
        found = dict(of_figure(figure.to_bytes(suffix), suffix, shown))
        is_unaltered = view["unit"] == "pieces" and view["special"] != "rescale"
        assert bool(found) == (is_computed(name) and is_unaltered), (name, view)
        close(found, weights, 0.02 if name == "half" else 1e-5)


def test_panels_of_different_numbers_have_a_column_each(readings: dict[str, Attention], weights: Numbers) -> None:
    one, other = readings["plain"], readings["ablated, zero"]
    figure = mv.compare([(one, HEAD), (other, HEAD)], unit="pieces")
    found, _, columns = in_table(figure.to_bytes(".csv"))
    assert [name for name in columns if name.startswith("weight")] == ["weight", "weight_ablated"]
    assert found.keys() == {(*HEAD, *at) for at in np.ndindex(weights[HEAD].shape)}
    close(found, weights)
    fields = fields_of(figure.to_bytes(".npz"), ".npz")
    np.testing.assert_array_equal(fields["panel2_weights_ablated"], other[HEAD])


def test_kept_heads_have_their_numbers_in_the_model_in_a_comparison(readings: dict[str, Attention]) -> None:
    kept, plain = readings["only"], readings["plain"]
    figure = mv.compare([(kept, kept.every_head()[0]), (plain, HEAD)])
    assert fields_of(figure.to_bytes(".npz"), ".npz")["heads"].tolist() == [[3, 1], [*HEAD]]


@pytest.mark.parametrize("suffix", files.shown_suffixes())
def test_a_difference_says_what_its_numbers_are(readings: dict[str, Attention], suffix: str) -> None:
    for (one, first), (other, second) in combinations([("plain", readings["plain"]), ("hidden", readings["words"])], 2):
        data = mv.difference((first, HEAD), (second, HEAD), unit="words", special="rescale").to_bytes(suffix)
        if suffix == ".csv":
            _, rows, _ = in_table(data)
            said = [rows[0]["first_quantity"], rows[0]["second_quantity"]]
            assert "weight" not in rows[0]
        else:
            fields = fields_of(data, suffix)
            said = [str(fields["first_numbers"]), str(fields["second_numbers"])]
            assert not {"weight", "weights"} & fields.keys()
        assert [name.replace("weights", "weight") for name in said] == ["weight_by_words_rescaled"] * 2, (one, other)


def test_by_words_and_rescaled_are_sums_and_means_of_the_model_s_weights(
    readings: dict[str, Attention], weights: Numbers
) -> None:
    """The case of the how-to for papers: 0.79 from “The” to “animal”, of which the model has 0.52."""
    reading = readings["plain"]
    _, rows, _ = in_table(reading.heatmap(HEAD, special="rescale").to_bytes(".csv"))
    of_the = next(row for row in rows if (row["query_token"], row["key_token"]) == ("The", "animal"))
    value = float(of_the["weight_by_words_rescaled"])
    words = merge_to_words(weights, reading.queries.groups, reading.keys.groups)[HEAD]
    assert words[1, 2] == pytest.approx(0.52225, abs=1e-4)
    assert value == pytest.approx(words[1, 2] / words[1, 1:-1].sum(), abs=1e-5)
    assert rows[0]["made"] == "typed; by words; special hidden, rescaled"


# ---- The command, pages and tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", files.suffixes())
@pytest.mark.parametrize(
    "asked", [[], ["--words"], ["--without-special"], ["--without", "L0H2"], ["--dtype", "float16"]]
)
def test_what_the_command_calls_weight_the_model_computed(
    tmp_path: Path, weights: Numbers, suffix: str, asked: list[str]
) -> None:
    file = tmp_path / f"a{suffix}"
    assert main(["attention", TEXT, *asked, "--out", str(file)]) == 0
    if suffix == ".csv":
        found = in_table(file.read_bytes())[0]
    else:
        array = np.asarray(fields_of(file.read_bytes(), suffix).get("weights", np.zeros(0)))
        found = dict(zip(np.ndindex(array.shape), array.ravel().tolist(), strict=True))  # type: ignore[arg-type]
    assert bool(found) == (asked in ([], HALF))
    close(found, weights, 0.02)


def test_the_data_of_a_page_say_what_its_numbers_are(readings: dict[str, Attention]) -> None:
    for name, reading in readings.items():
        for page in (reading.grid().page, mv.compare([(reading, reading.every_head()[0])]).page):
            assert page is not None
            packet = page.packet()
            header = unpack(packet).header if page.component == "explorer" else unpack_panels(packet)["readings"][0]
            called = header.get("numbers", header.get("quantity", "weight"))
            assert called == name_numbers(reading.quantity, reading.made), (name, page.component)


def test_links_of_a_corpus_are_named_as_attention_between_words(toy: Encoder) -> None:
    table = mv.roles.search_links("grammar", "L1H2", "toy", relation="nsubj", most=3).table()
    reading = toy.encode_words(table["sentence"][0].split())
    words = reading.by_words()
    query, key = (words.tokens.index(table[end][0]) for end in ("query", "key"))
    assert table["weight_by_words"][0] == pytest.approx(words["L1H2"][query, key], abs=1e-4)  # to four digits
    assert "weight" not in table
