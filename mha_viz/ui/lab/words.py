"""What the training lab asks, in a learner's words, and the answers of the papers. Numbers come from runs, not from
here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mha_viz.training.record import COUNT, CUT, IDENTICAL, OUTPUT, PENALTY, RANDOM, REMOVAL


class Words(NamedTuple):
    """One experiment: its name in the menu, the question, the answer with its source, what to look at."""

    short: str
    question: str
    answer: str
    source: str
    look: str


WORDS: Mapping[str, Words] = MappingProxyType(
    {
        IDENTICAL: Words(
            "All alike",
            "What stops the network from learning the same weights in every head?",
            "Nothing, if all heads start with the same weights: each then receives the same gradient at every step, "
            "and they stay one head, written several times. Training does not pull heads apart by itself; it needs a "
            "difference to begin with.",
            "Goodfellow, Bengio & Courville 2016, *Deep Learning*, section 8.4, on breaking symmetry.",
            "All maps are the same picture at every step, and the heads try to do two jobs with one habit.",
        ),
        OUTPUT: Words(
            "Only W_O differs",
            "What makes the learning in each head unique, if all are fed the same input?",
            "The heads' outputs are joined and multiplied by W_O, so each head meets its own slice of W_O, and the "
            "gradient comes back to it through that slice. Different slices mean different gradients: heads with the "
            "same W_Q, W_K and W_V part at the first update.",
            "Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.2, on concatenation and W_O.",
            "Move the step from 0 to 1: the gradients already differ at step 0, the weights at step 1, the maps later.",
        ),
        RANDOM: Words(
            "Random start",
            "How can heads start diverse, and do they stay so?",
            "Every weight is drawn at random, so heads differ before the first sentence and follow different gradients "
            "ever after. Nothing else in the usual loss keeps them apart, so they may end up with much the same habit.",
            "Vaswani et al. 2017, section 3.2.2; Clark et al. 2019, *What Does BERT Look At?*, section 6, on heads of "
            "a layer that behave alike.",
            "At step 0 the maps look alike, for attention is still nearly even; later they part. The weights of any "
            "two heads are nearly at right angles from the first step to the last.",
        ),
        PENALTY: Words(
            "A penalty",
            "Can heads be made to differ?",
            "A term λ·‖A Aᵀ − I‖² in the loss, where A holds one row per head, punishes heads for looking at the same "
            "words. Its diagonal also pushes each head towards a single word, so a large λ works against the task.",
            "Lin et al. 2017, *A Structured Self-Attentive Sentence Embedding*, section 2.2.",
            "Compare the two trainings: the overlap of the maps, and the loss of the answers, which does not count the "
            "penalty.",
        ),
        COUNT: Words(
            "One or many",
            "Why several heads, and what do they cost?",
            "One head has one set of weights for each word, so a word that must follow two relations gets an average "
            "of two values. Several heads look at several places for the same price as long as d_k = d_model / h, but "
            "with very many heads d_k becomes too small to find anything by.",
            "Vaswani et al. 2017, section 3.2.2 (“with a single attention head, averaging inhibits this”); "
            "Bhojanapalli et al. 2020, *Low-Rank Bottleneck in Multi-head Attention Models*.",
            "Accuracy against the number of heads, with the same parameters and multiply-adds for each.",
        ),
        CUT: Words(
            "Cutting the vector",
            "Is a different part of the input fed to each head? Is the vector split, or projected in full?",
            "Projected in full, in the papers: every head multiplies the whole vector by its own d_model × d_k "
            "matrices. Some implementations do cut the vector into chunks instead, which is cheaper and leaves each "
            "head its own chunk only.",
            "Vaswani et al. 2017, section 3.2.2; Bloem 2019, *Transformers from scratch*, on wide and narrow "
            "attention.",
            "What each cut saves, and what it costs in right answers.",
        ),
        REMOVAL: Words(
            "Without some heads",
            "Are heads redundant?",
            "Partly: after training, a share of the heads can be removed with little loss when the least important go "
            "first. A head that alone follows a relation is not redundant.",
            "Michel, Levy & Neubig 2019, *Are Sixteen Heads Really Better than One?*, sections 3 and 4; the random "
            "orders are this lab's own.",
            "How long the blue curve stays up, and which head brings it down.",
        ),
    }
)
LANGUAGE = (
    "Each experiment trains one attention layer, from nothing, on a made-up language. A word is a letter with a mark, "
    "such as *k▲*; every mark stands on two words, which are thereby linked. At each word two letters are asked for: "
    "that of **the word before** and that of **the linked word**. Only looking at the right place tells them."
)
