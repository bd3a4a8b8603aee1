"""The output of a head at one token: what each key contributes, and the words that it moves the token towards.

A head adds Σ_j A[i, j] (x_j W_V + b_V) W_O to the vector of token i, a sum over its links (Elhage et al. 2021, "A
Mathematical Framework for Transformer Circuits"; Kobayashi et al. 2020, "Attention is Not Only a Weight").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention.trace import Floats, Trace
from mha_viz.heads import Head, list_layers
from mha_viz.text import TokenizedText

if TYPE_CHECKING:
    import pandas as pd

OUTPUT_MATRIX, INPUT_EMBEDDINGS = "output matrix", "input embeddings"
BIAS = "b_O"


class WrittenWords(NamedTuple):
    """The words of the vocabulary that a vector moves a token towards and away from, the strongest first."""

    towards: tuple[str, ...]
    away: tuple[str, ...]


NO_WORDS = WrittenWords((), ())  # for a vector of zeros


@dataclass(frozen=True, eq=False)
class HeadOutput:
    """The output of a head at one token, as a sum over its links.

    A share is the projection of a vector on the sum that the layer's attention adds at this token, divided by the
    squared norm of that sum. The shares of all links of all heads and the share of the bias sum to 1; a share is
    negative if a vector works against the sum.

    Attributes:
        query: the number of the token, from 0.
        weights: A[query, key] of each key.
        vectors: A[query, key] (x_key W_V + b_V) W_O of each key, [key, d_model].
        shares: the share of each key.
        heads: the share of each head of the layer, then the share of b_O.
        matrix: the matrix that relates vectors to words, OUTPUT_MATRIX or INPUT_EMBEDDINGS.
        written: the words of each key's vector.
        whole: the words of the sum of all vectors.
    """

    model: str
    text: TokenizedText
    head: Head
    query: int
    weights: Floats
    vectors: Floats
    shares: npt.NDArray[np.float64]
    heads: npt.NDArray[np.float64]
    matrix: str
    written: tuple[WrittenWords, ...]
    whole: WrittenWords

    @property
    def norms(self) -> Floats:
        """The norm of each key's vector, [key]."""
        norms: Floats = np.linalg.norm(self.vectors, axis=-1)
        return norms

    def table(self) -> pd.DataFrame:
        """Return a table with one row per key, in the order of the text.

        The columns are ``token``, ``weight``, ``norm``, ``share``, and the words ``towards`` and ``away``.
        """
        import pandas as pd

        columns = {"weight": self.weights, "norm": self.norms, "share": self.shares}
        words = {side: [", ".join(getattr(words, side)) for words in self.written] for side in WrittenWords._fields}
        tokens = [token.text for token in self.text.tokens]
        return pd.DataFrame({"token": tokens} | columns | words, index=pd.RangeIndex(len(tokens), name="key"))

    def table_of_layer(self) -> pd.DataFrame:
        """Return a table with the ``share`` of each head of the layer, and of the bias "b_O"; they sum to 1."""
        import pandas as pd

        names = [str(Head(self.head.layer, head)) for head in list_layers(len(self.heads) - 1)]
        return pd.DataFrame({"share": self.heads}, index=pd.Index([*names, BIAS], name="part"))


class Links(NamedTuple):
    """The vectors that a head moves to one token, and their shares; see :class:`HeadOutput`."""

    vectors: Floats  # [key, d_model]
    shares: npt.NDArray[np.float64]  # [key]
    heads: npt.NDArray[np.float64]  # [head and bias]


def compute_links(trace: Trace, head: int, query: int) -> Links:
    """Compute the vectors that a head of a layer moves to a token. ``head`` is its number in the layer."""
    vectors = (trace.v[head] @ trace.slice_w_o(head)) * trace.weights[head, query][:, None]
    total = trace.output[query].astype(np.float64)
    parts = [trace.contribution(other)[query] for other in range(trace.heads)] + [trace.parameters.b_o]
    squared_norm = max(float(total @ total), np.finfo(np.float64).tiny)
    return Links(vectors, vectors @ total / squared_norm, np.stack(parts) @ total / squared_norm)


def compute_copying_score(circuit: npt.NDArray[np.float64]) -> float:
    """Return Σ λ / Σ |λ| over the eigenvalues of a circuit, −1 to 1 (Elhage et al. 2021, "Copying heads").

    ``circuit`` [d_head, d_head] has the same nonzero eigenvalues as the circuit from words to words. NaN if all are 0.
    """
    values = np.linalg.eigvals(circuit)
    size = np.abs(values).sum()
    return float(values.sum().real / size) if size > 0 else float("nan")
