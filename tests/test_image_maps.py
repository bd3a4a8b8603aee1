"""The weights of patches over an image: which are drawn where, from recordings of vision transformers; and frames of
sound."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTConfig, ViTModel, WhisperConfig, WhisperModel

import mha_viz as mv
from mha_viz.attention import Attention
from mha_viz.errors import SettingError, ShapeError
from mha_viz.figures.drawing.marks import POINTS_PER_MM, CellPicture
from mha_viz.models.reading.encoder import Encoder

ROWS, COLUMNS = 2, 3
PLACES = [f"{row},{column}" for row in range(ROWS) for column in range(COLUMNS)]
PATCHES = [str(number) for number in range(ROWS * COLUMNS)]  # names that do not say the shape
DARK_LEFT = np.repeat([[0, 0, 128, 128, 255, 255]], 4, axis=0).astype(np.uint8)  # [row, column]


def reading() -> Attention:
    weights = np.random.default_rng(0).dirichlet(np.ones(7), (2, 2, 7)).astype(np.float32)
    return Attention.from_tensors(weights, ["[CLS]", *PATCHES], model="vit")


def pictures(figure: mv.Figure) -> list[CellPicture]:
    """Of the heads, without the colour scale."""
    return [mark for mark in figure.drawing.marks if isinstance(mark, CellPicture)][:-1]


def test_the_numbers_are_the_row_or_the_column_of_the_held_token() -> None:
    a = reading()
    for pin, of in (("q0", lambda w: w[0, 1:]), ("q3", lambda w: w[3, 1:]), ("k0", lambda w: w[1:, 0])):
        figure = mv.overlay(a, columns=COLUMNS, pin=pin, layers=[1])
        rows = json.loads(figure.to_bytes(".json"))["rows"]
        for row in rows:
            expected = of(a[row["layer"], row["head"]]).reshape(ROWS, COLUMNS)
            assert row["value"] == pytest.approx(float(expected[row["row"], row["column"]]), rel=1e-6)
        assert len(rows) == 2 * len(PATCHES)
    assert "from each of 2 × 3 patches to “[CLS]”" in figure.caption


def test_kept_heads_are_named_by_their_numbers_in_the_model() -> None:
    rows = json.loads(mv.overlay(reading().only(["L1H1"]), columns=COLUMNS).to_bytes(".json"))["rows"]
    assert {(row["layer"], row["head"]) for row in rows} == {(1, 1)}


def test_each_patch_is_coloured_by_its_weight_over_its_part_of_the_image() -> None:
    weights = np.zeros((1, 1, 7, 7), np.float32)
    weights[..., 1] = 1  # everything looks at the first patch
    a = Attention.from_tensors(weights, ["[CLS]", *PATCHES])
    (bare,) = pictures(mv.overlay(a, columns=COLUMNS))
    assert bare.pixels.shape == (ROWS, COLUMNS, 3)
    assert bare.width / bare.height == pytest.approx(COLUMNS / ROWS)
    assert [tuple(bare.pixels[0, 0]), tuple(bare.pixels[1, 2])] == [(12, 44, 90), (245, 243, 238)]
    (over,) = pictures(mv.overlay(a, DARK_LEFT, columns=COLUMNS))
    sharp = len(over.pixels) // ROWS
    blue, red = (over.pixels[..., colour].astype(int) for colour in (2, 0))
    seen = blue - red > 30
    assert seen[:sharp, :sharp].all()
    assert not seen[sharp:].any()
    assert not seen[:, sharp:].any()
    assert red[-1, 0] < red[-1, over.pixels.shape[1] // 2] < red[-1, -1], "the image is seen elsewhere"


@pytest.mark.parametrize(
    "image",
    [
        Image.fromarray(DARK_LEFT),
        Image.fromarray(DARK_LEFT).convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE),
        Image.fromarray(DARK_LEFT).convert("LA"),
        DARK_LEFT.astype(np.uint16) * 257,
        DARK_LEFT / 255,
        DARK_LEFT[..., None].repeat(3, 2),
        torch.tensor(DARK_LEFT / 255).expand(3, -1, -1),
    ],
    ids=["picture", "colour table", "transparent", "16 bits", "shares", "colours last", "colours first"],
)
def test_an_image_may_have_any_usual_form(image: Any) -> None:
    usual, other = (pictures(mv.overlay(reading(), one, columns=COLUMNS))[0] for one in (DARK_LEFT, image))
    assert np.abs(usual.pixels.astype(int) - other.pixels).max() <= 1


def test_it_is_saved_in_every_format_that_it_names() -> None:
    figure = mv.overlay(reading(), DARK_LEFT, columns=COLUMNS, look="dark")
    assert ".html" not in figure.suffixes
    for suffix in figure.suffixes:
        assert len(figure.to_bytes(suffix)) > 100


@pytest.mark.parametrize(
    ("image", "options", "error", "words"),
    [
        (None, {}, ShapeError, "6 patches do not form a square of 4 or 9. Give columns="),
        (None, {"columns": 4}, ShapeError, "6 patches do not form rows of 4"),
        (None, {"columns": 0}, ShapeError, "6 patches do not form rows of 0"),
        (None, {"columns": 3, "pin": "q0k1"}, SettingError, "Pin one token"),
        (None, {"columns": 3, "pin": "q9"}, SettingError, "there is no token 9"),
        (np.zeros((2, 2, 7)), {"columns": 3}, ShapeError, "an array of"),
        (np.full((2, 2), np.nan), {"columns": 3}, ShapeError, "not finite"),
        ("cat.png", {"columns": 3}, ShapeError, "is the path of an image"),
        (object(), {"columns": 3}, ShapeError, "Give a picture"),
        (DARK_LEFT / 255 - 0.5, {"columns": 3}, ShapeError, "below 0"),
        ([[1], [1, 2]], {"columns": 3}, ShapeError, "different lengths"),
        (None, {"columns": "3"}, SettingError, "number of patches in a row"),
        (None, {"columns": True}, SettingError, "number of patches in a row"),
        (None, {"columns": 3, "special": "hide"}, SettingError, "special does not go with overlay"),
        (None, {"columns": 3, "scale": "row"}, SettingError, "scale is 'row'"),
    ],
)
def test_what_does_not_fit_is_said(image: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        mv.overlay(reading(), image, **options)


@pytest.mark.parametrize("text", ["The animal was too tired today .", "4 9 16 25"])
def test_the_reading_of_a_text_has_no_patches(text: str, minilm: Encoder) -> None:
    read = minilm.encode(text)
    for one in (read, read.by_words()):
        with pytest.raises(ShapeError, match=r"are those of a text, such as .* and not patches.*named by number"):
            mv.overlay(one, DARK_LEFT)
    with pytest.raises(ShapeError, match="such as “the”"):
        mv.overlay(Attention.from_tensors(np.ones((1, 1, 4, 4)) / 4, ["the", "cat", "sat", "down"]))


def shown(names: list[str], **options: Any) -> list[list[float]]:
    """[row, column] from the first token, whose weights for the tokens are 1, 2, 3, … by their sum."""
    weights = np.arange(1, len(names) + 1, dtype=np.float32)
    a = Attention.from_tensors(np.tile(weights / weights.sum(), (1, 1, len(names), 1)), names)
    rows = json.loads(mv.overlay(a, pin="q0", **options).to_bytes(".json"))["rows"]
    table = np.zeros((max(row["row"] for row in rows) + 1, max(row["column"] for row in rows) + 1))
    for row in rows:
        table[row["row"], row["column"]] = round(row["value"] * float(weights.sum()))
    return table.tolist()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["[CLS]"], []),
        (["[CLS]", "[REG1]", "[REG2]", "[REG3]"], []),
        (["[CLS]", "[DIST]"], []),
        (["[CLS]", "[REG]"], ["[REG]"]),
        (["<cls>", "<reg_0>"], ["<reg_1>"]),
        ([], ["[SEP]"]),
    ],
)
@pytest.mark.parametrize("names", ["places", "numbers"])
def test_names_in_brackets_are_no_patches(before: list[str], after: list[str], names: str) -> None:
    options = {} if names == "places" else {"columns": COLUMNS}
    first = len(before) + 1
    expected = [[first, first + 1, first + 2], [first + 3, first + 4, first + 5]]
    assert shown([*before, *(PLACES if names == "places" else PATCHES), *after], **options) == expected


@pytest.mark.parametrize("name", ["{}_{}", "patch_{}_{}", "r{}c{}", "{}x{}", "row {}, col {}", "image3 {}-{}"])
def test_a_row_and_a_column_are_read_however_they_are_written(name: str) -> None:
    names = [name.format(*place.split(",")) for place in PLACES]
    assert shown(["[CLS]", *names]) == shown(["[CLS]", *PLACES])
    assert shown(["[CLS]", *names[::-1]]) == shown(["[CLS]", *PLACES[::-1]])


def test_names_say_the_place_of_each_patch() -> None:
    by_columns = ["[CLS]", *(f"({row}, {column})" for column in (1, 2, 3) for row in (1, 2))]  # counted from 1
    assert shown(by_columns) == [[2, 4, 6], [3, 5, 7]]


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        (["[CLS]", *PLACES[:5]], {}, r"5 patches with 5 places do not fill the 2 × 3 = 6"),
        (["[CLS]", *PLACES, "0,1"], {}, r"7 patches with 6 places do not fill the 2 × 3 = 6"),
        (["[CLS]", *PLACES], {"columns": 2}, "give 3 columns, but columns is 2. Leave it out"),
        (["[CLS]", *PATCHES, "6"], {"columns": 3}, "7 patches do not form rows of 3, of which 6 would fill 2"),
        (["[CLS]", *PATCHES], {}, "6 patches do not form a square of 4 or 9"),
        (
            [f"img{image}_p{patch}" for image in range(4) for patch in range(4)],
            {},
            "several numbers that are not a row",
        ),
        ([f"{at},{row},{row}" for at in range(2) for row in range(2)], {}, "several numbers that are not a row"),
        (["[CLS]", "[PATCH_1]", "<patch2>"], {}, "have names in brackets, or are special: none is a patch"),
        (["reg0", "reg1", *PLACES], {}, "two kinds have numbers, such as “reg1” and “1,2”"),
        (["[CLS]", "[REG1]"], {}, "have names in brackets, or are special: none is a patch"),
    ],
)
def test_patches_that_do_not_fill_a_grid_are_refused_with_both_numbers(
    names: list[str], options: dict[str, int], words: str
) -> None:
    with pytest.raises(ShapeError, match=words):
        shown(names, **options)


def test_many_layers_fit_a_page_and_signs_are_said() -> None:
    signed = np.random.default_rng(0).normal(size=(12, 1, 7, 7)).astype(np.float32)
    a = Attention.from_tensors(signed, ["[CLS]", *PATCHES], quantity="gradient")
    figure = mv.overlay(a, DARK_LEFT, columns=COLUMNS, max_height_mm=200)
    assert figure.drawing.height <= 200 * POINTS_PER_MM
    assert sum(picture.pixels.size for picture in pictures(figure)) < 3 * 1600**2
    assert "Colour: 0 to ±each head's largest; the scale shows each colour over black" in figure.caption


def test_attention_of_transformers_vision_and_sound_is_read() -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    vision = ViTModel._from_config(ViTConfig(**sizes, image_size=48, patch_size=16), attn_implementation="eager").eval()
    sound = WhisperModel._from_config(
        WhisperConfig(
            **{"vocab_size": 9, "d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2},
            **{"decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "max_source_positions": 20},
            **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
        ),
        attn_implementation="eager",
    ).eval()
    with torch.no_grad():
        seen = vision(torch.rand(1, 3, 48, 48), output_attentions=True).attentions
        heard = sound(torch.rand(1, 80, 40), decoder_input_ids=torch.tensor([[1, 5]]), output_attentions=True)
    a = Attention.from_cache(seen, ["[CLS]", *(f"{row},{column}" for row in range(3) for column in range(3))])
    assert len(pictures(mv.overlay(a))) == 4
    assert a["L1H0"] == pytest.approx(seen[1][0, 0].numpy())
    frames = [f"{frame * 0.02:.2f} s" for frame in range(20)]
    crossed = Attention.from_cache(heard.cross_attentions, ["<s>", "▁The"], frames)
    assert (crossed.heatmap("L0H1").drawing.alt != "", len(crossed.keys)) == (True, 20)
    assert Attention.from_cache(heard.encoder_attentions, frames).by_words().keys.tokens[3].text == "0.06 s"
