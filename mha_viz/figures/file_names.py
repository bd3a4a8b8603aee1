"""Names of figure files: the heads that a figure shows and the beginning of its text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from mha_viz.attention import Attention, Head
from mha_viz.figures.layout.caption import short_name
from mha_viz.view.quantities import QUANTITIES

MAX_HEADS = 4  # maximum number of heads that a name lists; for more heads it states their number
MAX_WORDS, MAX_LETTERS = 4, 24  # of the text
MAX_CHARACTERS = 1_000  # of the text, before it is split into words
# Latin letters that Unicode does not decompose into ASCII letters.
_ASCII = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i", "ħ": "h"}
)
_WORD = re.compile(r"[^\W_]\S*")  # begins with a letter, not with a combining accent
_ACCENTS = re.compile("(?<=[a-z0-9])[\u0300-\u036f]+")
_APOSTROPHES = re.compile("['’‘ʼ`´]")


def build_file_name(parts: Sequence[str], text: str = "", suffix: str = "") -> str:
    """Build a file name from ``parts``, such as heads, and the first four words of a text, in at most 24 letters:
    "L3H1_the-animal-didnt-cross.pdf".

    Letters are lower case, and without accents where that makes them ASCII; letters of other scripts stay. Punctuation
    is left out, so that the name is not a path and every system can store it.
    """
    return "_".join(filter(None, ("-".join(parts), _make_slug(text)))) + suffix


def name_for_heads(panels: Sequence[tuple[Attention, Head]], *details: str, joiner: str = "") -> str:
    """Name the figure of these heads, with the text of the first: "L3H1-L2H4_the-animal-didnt-cross".

    ``joiner`` stands between two heads, "minus" for their difference; ``details`` follow the heads.
    """
    (reading, _), *_ = panels
    names = [short_name(attention, head) for attention, head in panels]
    if len(names) > MAX_HEADS:
        names = [f"{len(names)}-{_map_noun(reading)}"]
    return build_file_name([f"-{joiner}-".join(names) if joiner else "-".join(names), *details], reading.queries.text)


def name_for_all(attention: Attention, heads: Sequence[Head]) -> str:
    """Name the figure of all heads of a reading, or of some ``heads``."""
    if len(heads) < len(attention.every_head()):
        return name_for_heads([(attention, head) for head in heads])
    return build_file_name([f"all-{_map_noun(attention)}"], attention.queries.text)


def _map_noun(attention: Attention) -> str:
    return "layers" if QUANTITIES[attention.quantity].of_layers else "heads"


def _make_slug(text: str) -> str:
    """Return the first words of a text, joined by hyphens."""
    lower_case = _APOSTROPHES.sub("", text[:MAX_CHARACTERS].lower().translate(_ASCII))
    letters = _ACCENTS.sub("", "".join(map(_to_ascii, lower_case)))
    first, *others = [unicodedata.normalize("NFC", word) for word in _WORD.findall(letters)[:MAX_WORDS]] or [""]
    slug = first[:MAX_LETTERS]
    for word in others:
        if len(slug) + 1 + len(word) > MAX_LETTERS:
            break
        slug += f"-{word}"
    return slug


def _to_ascii(character: str) -> str:
    """Return the ASCII letters and digits of a character's decomposition, in lower case.

    If there are none, letters, marks and digits stay, and anything else becomes a space.
    """
    ascii_text = "".join(c for c in unicodedata.normalize("NFKD", character) if c.isascii() and c.isalnum())
    return ascii_text.lower() or (character if unicodedata.category(character)[0] in "LMN" else " ")
