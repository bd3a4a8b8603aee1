"""Write assets/first_reading.npz: the first example as the default model reads it.

Run again when the example, the model or the tokenizer changes; a test compares it with a live reading.
"""

import json
from dataclasses import asdict

import numpy as np

import mha_viz
from mha_viz.files.assets import asset_path
from mha_viz.models.getting import catalog


def main() -> None:
    """Encode the first example and store its attention."""
    example = json.loads(asset_path("examples.json").read_text("utf-8"))[0]
    attention = mha_viz.load(catalog.DEFAULT).encode(example["text"])
    fields = {
        "model": attention.model,
        "revision": attention.revision,
        "text": attention.text.text,
        "tokens": [asdict(token) for token in attention.text.tokens],
    }
    np.savez_compressed(
        asset_path("first_reading.npz"), weights=attention.weights, reading=np.array(json.dumps(fields))
    )


if __name__ == "__main__":
    main()
