"""``python tools/four_questions.py FOLDER [ADDRESS]``: write a page with four questions about attention heads.

The model runs in the reader's browser. A picture is added for sites that show a preview. ADDRESS is where the page will
be published; previews need it.
"""

import sys
from html import escape
from pathlib import Path

import mha_viz as mv
from mha_viz import figures
from mha_viz.models.getting import catalog

TEXT = "The animal didn't cross the street because it was too tired."
TITLE = "What does an attention head look at?"
INTRODUCTION = "Four heads of a small BERT read one sentence. Below, all of its heads read yours, in this browser."
CARD = "card.png"
CARD_MM, CARD_DPI = 180.0, 170  # 1,200 pixels wide
QUESTIONS = {
    "L3H1": (
        "What does “it” refer to?",
        "“it” gives the animal most of its weight. Over annotated texts, this head finds what a pronoun refers to in "
        "two of three cases; a simple rule, the earlier mention of the same form, does in one of two. A link is a "
        "pattern, not a proof that the model uses it.",
    ),
    "L0H0": (
        "Does every head pick a word?",
        "No: this one averages. Each word spreads its weight over nearly the whole sentence.",
    ),
    "L1H8": (
        "Do heads of one model do the same?",
        "No, they diverge. Nothing in training asks them to differ, but they start from different random weights. This "
        "one looks mostly at the next word; compare the squares in the grid below.",
    ),
    "L0H2": (
        "Who looks one word back?",
        "This head, at almost any word of any text: a diagonal, one step below the main one.",
    ),
}


def main(folder: Path, address: str = "") -> None:
    """Write the page and its picture."""
    model = mv.load(catalog.DEFAULT)
    reading = model.encode(TEXT)
    (pronoun,) = (i for i, token in enumerate(reading.text.tokens) if token.text == "it")
    panels = [(reading, head, question) for head, (question, _) in QUESTIONS.items()]
    remarks = [remark for _, remark in QUESTIONS.values()]
    page = mv.publish(
        panels, folder, live=model, pin=f"q{pronoun}", title=TITLE, introduction=INTRODUCTION, remarks=remarks
    )
    page /= "index.html"
    figures.grid(reading, width_mm=CARD_MM).save(folder / CARD, dpi=CARD_DPI)
    picture = f"{address.rstrip('/')}/{CARD}" if address else CARD
    facts = {"title": TITLE, "description": INTRODUCTION, "type": "website", "image": picture}
    tags = "".join(f'<meta property="og:{name}" content="{escape(value)}">\n' for name, value in facts.items())
    tags += '<meta name="twitter:card" content="summary_large_image">\n'
    page.write_text(page.read_text("utf-8").replace("<title>", f"{tags}<title>", 1), "utf-8")
    print(f"{page}; python -m http.server -d {folder} shows it")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
