"""The texts of the training lab: its questions in plain words, and the answers of the papers. Numbers come from
results, not from here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mha_viz.training.record import COUNT, CUT, IDENTICAL, OUTPUT, PENALTY, RANDOM, REMOVAL


class ExperimentTexts(NamedTuple):
    """The texts of one experiment: its name in the menu, the question, the answer with its source."""

    short: str
    question: str
    answer: str
    source: str


WORDS: Mapping[str, ExperimentTexts] = MappingProxyType(
    {
        IDENTICAL: ExperimentTexts(
            "All alike",
            "What stops the network from learning the same weights in every head?",
            "The random start: every head begins with different random weights, so it gets a different gradient and "
            "learns something different. If all weights of two heads are equal, their slices of W_O included, they get "
            "the same gradient at every step and remain copies of one head; a difference in W_O alone is enough to "
            "separate them.",
            "Goodfellow, Bengio & Courville 2016, *Deep Learning*, section 8.4, on breaking symmetry.",
        ),
        OUTPUT: ExperimentTexts(
            "Only W_O differs",
            "What makes the learning in each head unique, if all are fed the same input?",
            "The heads' outputs are concatenated and multiplied by W_O, so the output of each head meets a different "
            "slice of W_O, and its gradient comes back through that slice. Different slices give different gradients: "
            "heads with the same W_Q, W_K and W_V differ after the first update.",
            "Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.2, on concatenation and W_O.",
        ),
        RANDOM: ExperimentTexts(
            "Random start",
            "How do heads start out diverse, and do they stay diverse?",
            "Every weight is drawn at random, so heads differ before the first sentence and receive different "
            "gradients from then on. Nothing else in the usual loss keeps them apart, so they may still end up with a "
            "similar attention pattern.",
            "Vaswani et al. 2017, section 3.2.2; Clark et al. 2019, *What Does BERT Look At?*, section 6, on heads of "
            "a layer that behave alike.",
        ),
        PENALTY: ExperimentTexts(
            "A penalty",
            "Can heads be made to differ?",
            "A term λ·‖A Aᵀ − I‖² in the loss, where A holds one row per head, punishes heads for looking at the same "
            "words. Because the diagonal of A Aᵀ is pushed to 1, it also makes each head look at a single word, so a "
            "large λ works against the task.",
            "Lin et al. 2017, *A Structured Self-Attentive Sentence Embedding*, section 2.2.",
        ),
        COUNT: ExperimentTexts(
            "One head or many",
            "Why several heads, and what do they cost?",
            "One head has one set of weights for each word, so a word that must follow two relations gets an average "
            "of two values. With d_k = d_model / h, several heads look at several places at the same cost, but with "
            "very many heads each query is too short to pick out the right word.",
            "Vaswani et al. 2017, section 3.2.2 (“with a single attention head, averaging inhibits this”); "
            "Bhojanapalli et al. 2020, *Low-Rank Bottleneck in Multi-head Attention Models*.",
        ),
        CUT: ExperimentTexts(
            "Cutting the vector",
            "Is a different part of the input fed to each head? Is the vector split, or projected in full?",
            "In the papers, projected in full: every head multiplies the whole vector by its own d_model × d_k "
            "matrices. Some implementations cut the vector into chunks instead, which is cheaper, but then each head "
            "sees only its own chunk.",
            "Vaswani et al. 2017, section 3.2.2; Bloem 2019, *Transformers from scratch*, on wide and narrow "
            "attention.",
        ),
        REMOVAL: ExperimentTexts(
            "Removing heads",
            "Are heads redundant?",
            "Partly: after training, some of the heads can be removed with little loss if the least important go "
            "first. A head that is the only one to follow a relation is not redundant.",
            "Michel, Levy & Neubig 2019, *Are Sixteen Heads Really Better than One?*, sections 3 and 4; the random "
            "orders are an addition of this lab.",
        ),
    }
)
LANGUAGE = (
    "Each experiment trains a single attention layer from scratch on a made-up language. A word is a letter with a "
    "mark, such as *k▲*. Each mark appears on exactly two words; these two are *linked*. For each word the layer must "
    "name two letters: that of **the word before** it and that of **the linked word**. It can only know them by "
    "attending to the right word. Right answers are counted on *held-out* sentences, which are never used for training."
)
