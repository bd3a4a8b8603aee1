"""Compute the parts of scores in float64, with loops over heads, queries and keys.

There is one class per kind of model, which reads transformers' own modules.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch

Vectors = dict[str, torch.Tensor]  # by the name of the part: [n, d_model]
Table = dict[tuple[str, str], float]

SHIFTS, BIASES, OF_QK, TURN, DISTANCE = (
    "shifts of norms",
    "output biases",
    "biases of q and k",
    "rotation",
    "distance",
)


class Bert:
    """Post-norm: BERT."""

    def __init__(self, model: Any, ids: list[int]) -> None:
        self.model = copy.deepcopy(model).double()
        self.ids, self.n = torch.tensor(ids), len(ids)
        self.heads = self.model.config.num_attention_heads
        self.eps = self.epsilon()

    def epsilon(self) -> float:
        """Return the number under the roots of the norms."""
        return float(self.model.config.layer_norm_eps)

    # ---- what differs between models -----------------------------------------------------------------------------

    def embedded(self) -> Vectors:
        """Return what enters the first layer."""
        e = self.model.embeddings
        types = e.token_type_embeddings.weight[0].expand(self.n, -1)
        parts = {
            "word": e.word_embeddings.weight[self.ids],
            "position": e.position_embeddings.weight[: self.n],
            "type": types,
        }
        return self.normed(parts, e.LayerNorm)

    def linear(self, layer: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W [d_model, out] and b [out] of "q", "k", "v" or "o"."""
        attention = self.model.encoder.layer[layer].attention
        named = {"q": "query", "k": "key", "v": "value"}
        module = attention.output.dense if which == "o" else getattr(attention.self, named[which])
        return module.weight.T, module.bias

    def before(self, layer: int, parts: Vectors) -> Vectors:
        """Return the input of a layer's attention."""
        return parts

    def after(self, layer: int, parts: Vectors) -> Vectors:
        """Return the output of a layer, whose heads are among the parts."""
        block = self.model.encoder.layer[layer]
        parts = self.normed(parts, block.attention.output.LayerNorm)
        x = total(parts)
        parts = parts | {f"feed-forward {layer}": block.output.dense(block.intermediate(x))}
        return self.normed(parts, block.output.LayerNorm)

    def turned(self, layer: int, vectors: torch.Tensor) -> torch.Tensor:
        """Rotate queries or keys [n, d_k] by their positions."""
        return vectors

    def masked(self, query: int, key: int) -> bool:
        """Return whether a query does not see a key."""
        return False

    def scaling(self, d_k: int) -> float:
        """Return the factor of products."""
        return d_k**-0.5

    def distances(self, layer: int, head: int, query: int, key: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the vectors that a query and a key are compared with."""
        return None

    # ---- what does not -------------------------------------------------------------------------------------------

    def normed(self, parts: Vectors, module: Any) -> Vectors:
        """Apply a layer norm to each part, token by token."""
        x = total(parts)
        behind = {name: torch.zeros_like(x) for name in parts}
        for token in range(self.n):
            deviation = math.sqrt(float(((x[token] - x[token].mean()) ** 2).mean()) + self.eps)
            for name, vectors in parts.items():
                behind[name][token] = (vectors[token] - vectors[token].mean()) / deviation * module.weight
        behind[SHIFTS] = behind.get(SHIFTS, torch.zeros_like(x)) + module.bias
        return behind

    def of_head(self, layer: int, head: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the columns of a head. Heads may share keys and values."""
        weight, bias = self.linear(layer, which)
        d_k = self.linear(layer, "q")[0].shape[1] // self.heads
        at = head // (self.heads * d_k // weight.shape[1])
        return weight[:, at * d_k : (at + 1) * d_k], bias[at * d_k : (at + 1) * d_k]

    def given(self, layer: int) -> Vectors:
        """Return the input of a layer's attention, in parts."""
        parts = self.embedded()
        for below in range(layer):
            given, added = self.before(below, parts), {}
            weight, bias = self.linear(below, "o")
            for head in range(self.heads):
                weights = self.scores(below, head, total(given)).softmax(-1)
                w_v, b_v = self.of_head(below, head, "v")
                context = weights @ (total(given) @ w_v + b_v)
                d_v = context.shape[1]
                added[f"L{below}H{head}"] = context @ weight[head * d_v : (head + 1) * d_v]
            biases = parts.get(BIASES, torch.zeros_like(total(parts))) + bias
            parts = self.after(below, parts | added | {BIASES: biases})
        return self.before(layer, parts)

    def scores(self, layer: int, head: int, x: torch.Tensor) -> torch.Tensor:
        """Compute the scores [query, key] one by one."""
        (w_q, b_q), (w_k, b_k) = (self.of_head(layer, head, which) for which in "qk")
        q, k = self.turned(layer, x @ w_q + b_q), self.turned(layer, x @ w_k + b_k)
        plain_q, plain_k = x @ w_q + b_q, x @ w_k + b_k
        scores = torch.full((self.n, self.n), -math.inf, dtype=torch.float64)
        for i in range(self.n):
            for j in range(self.n):
                if not self.masked(i, j):
                    score = q[i] @ k[j]
                    joined = self.distances(layer, head, i, j)
                    if joined is not None:
                        score = score + plain_q[i] @ joined[0] + plain_k[j] @ joined[1]
                    scores[i, j] = score * self.scaling(q.shape[1])
        return scores

    @torch.no_grad()
    def table(self, layer: int, head: int, query: int, key: int) -> tuple[Table, float]:
        """Return the score of two tokens pair by pair, and as a whole."""
        parts = self.given(layer)
        score = float(self.scores(layer, head, total(parts))[query, key])
        sides = []
        for which in "qk":
            weight, bias = self.of_head(layer, head, which)
            sides.append({name: x @ weight for name, x in parts.items()} | {OF_QK: bias.expand(self.n, -1)})
        factor = self.scaling(next(iter(sides[0].values())).shape[1])
        table = {(a, b): float(q[query] @ k[key]) * factor for a, q in sides[0].items() for b, k in sides[1].items()}
        turned = [{name: self.turned(layer, vectors) for name, vectors in side.items()} for side in sides]
        moved = sum(float(q[query] @ k[key]) * factor for q in turned[0].values() for k in turned[1].values())
        table[TURN, TURN] = moved - sum(table.values())
        joined = self.distances(layer, head, query, key)
        if joined is not None:
            table |= {(name, DISTANCE): float(q[query] @ joined[0]) * factor for name, q in sides[0].items()}
            table |= {(DISTANCE, name): float(k[key] @ joined[1]) * factor for name, k in sides[1].items()}
        return table, score


def total(parts: Vectors) -> torch.Tensor:
    """Return the sum of all parts, [n, d_model]."""
    return torch.stack(list(parts.values())).sum(0)


class Gpt2(Bert):
    """Pre-norm and causal: GPT-2."""

    def epsilon(self) -> float:
        return float(self.model.config.layer_norm_epsilon)

    def embedded(self) -> Vectors:
        return {"word": self.model.wte.weight[self.ids], "position": self.model.wpe.weight[: self.n]}

    def linear(self, layer: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        attention = self.model.h[layer].attn
        if which == "o":
            return attention.c_proj.weight, attention.c_proj.bias
        d = self.model.config.n_embd
        columns = slice("qkv".index(which) * d, ("qkv".index(which) + 1) * d)
        return attention.c_attn.weight[:, columns], attention.c_attn.bias[columns]

    def before(self, layer: int, parts: Vectors) -> Vectors:
        return self.normed(parts, self.model.h[layer].ln_1)

    def after(self, layer: int, parts: Vectors) -> Vectors:
        block = self.model.h[layer]
        return parts | {f"feed-forward {layer}": block.mlp(block.ln_2(total(parts)))}

    def masked(self, query: int, key: int) -> bool:
        return key > query


class Llama(Bert):
    """Pre-norm with root mean squares, causal, rotated, with shared keys: Llama."""

    def epsilon(self) -> float:
        return float(self.model.config.rms_norm_eps)

    def embedded(self) -> Vectors:
        return {"word": self.model.embed_tokens.weight[self.ids]}

    def linear(self, layer: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        weight = getattr(self.model.layers[layer].self_attn, f"{which}_proj").weight.T
        return weight, weight.new_zeros(weight.shape[1])

    def normed(self, parts: Vectors, module: Any) -> Vectors:
        x = total(parts)
        size = ((x**2).mean(-1, keepdim=True) + self.eps).sqrt()
        return {name: vectors / size * module.weight for name, vectors in parts.items()}

    def before(self, layer: int, parts: Vectors) -> Vectors:
        return self.normed(parts, self.model.layers[layer].input_layernorm)

    def after(self, layer: int, parts: Vectors) -> Vectors:
        block, x = self.model.layers[layer], total(parts)
        inside = self.normed({"x": x}, block.post_attention_layernorm)["x"]
        return parts | {f"feed-forward {layer}": block.mlp(inside)}

    def turned(self, layer: int, vectors: torch.Tensor) -> torch.Tensor:
        base, half = self.model.config.rope_parameters["rope_theta"], vectors.shape[1] // 2
        moved = vectors.clone()
        for place in range(len(vectors)):
            for pair in range(half):
                angle = place / base ** (pair / half)
                first, second = vectors[place, pair], vectors[place, pair + half]
                moved[place, pair] = first * math.cos(angle) - second * math.sin(angle)
                moved[place, pair + half] = second * math.cos(angle) + first * math.sin(angle)
        return moved

    def masked(self, query: int, key: int) -> bool:
        return key > query


class Deberta(Bert):
    """Post-norm with terms of the distance: DeBERTa."""

    def embedded(self) -> Vectors:
        e = self.model.embeddings
        return self.normed({"word": e.word_embeddings.weight[self.ids]}, e.LayerNorm)

    def linear(self, layer: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        attention = self.model.encoder.layer[layer].attention
        named = {"q": "query_proj", "k": "key_proj", "v": "value_proj"}
        module = attention.output.dense if which == "o" else getattr(attention.self, named[which])
        return module.weight.T, module.bias

    def scaling(self, d_k: int) -> float:
        return (3 * d_k) ** -0.5

    def distances(self, layer: int, head: int, query: int, key: int) -> tuple[torch.Tensor, torch.Tensor]:
        span = self.model.config.position_buckets
        longest = self.model.config.max_position_embeddings
        rows = self.model.encoder.get_rel_embedding()
        (w_q, b_q), (w_k, b_k) = (self.of_head(layer, head, which) for which in "qk")
        at = min(max(bucket(query - key, span, longest) + span, 0), 2 * span - 1)
        back = min(max(-bucket(key - query, span, longest) + span, 0), 2 * span - 1)
        return rows[at] @ w_k + b_k, rows[back] @ w_q + b_q


def bucket(apart: int, size: int, longest: int) -> int:
    """Return the number of a distance.

    Distances up to half of ``size`` each have their own number; farther ones share numbers.
    """
    half = size // 2
    if abs(apart) <= half:
        return apart
    far = math.ceil(math.log(abs(apart) / half) / math.log((longest - 1) / half) * (half - 1)) + half
    return far if apart > 0 else -far


BY_HAND = {"bert": Bert, "gpt2": Gpt2, "llama": Llama, "deberta-v2": Deberta}


class T5:
    """Both attentions of T5's decoder, from what hooks hear in one pass in float64."""

    def __init__(self, model: Any, source: list[int], target: list[int]) -> None:
        self.model = copy.deepcopy(model).double()
        self.heard: dict[Any, tuple[torch.Tensor, torch.Tensor]] = {}  # what each module takes and puts out
        for module in self.model.modules():
            if not list(module.children()) or type(module).__name__ == "T5LayerFF":
                module.register_forward_hook(self._hear)
        with torch.no_grad():
            self.model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]), use_cache=False)

    def _hear(self, module: Any, given: Any, out: torch.Tensor) -> None:
        if given[0].is_floating_point():
            self.heard[module] = given[0][0], out[0]

    def _heads(self, attention: Any, name: str) -> Vectors:
        context, weight = self.heard[attention.o][0], attention.o.weight.T
        d = attention.key_value_proj_dim
        columns = [slice(head * d, (head + 1) * d) for head in range(attention.n_heads)]
        return {f"{name}H{head}": context[:, at] @ weight[at] for head, at in enumerate(columns)}

    def _normed(self, parts: Vectors, norm: Any) -> Vectors:
        size = (total(parts).pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).sqrt()
        return {name: vectors / size * norm.weight for name, vectors in parts.items()}

    def _stream(self, stack: Any, prefix: str, until: tuple[int, bool]) -> Vectors:
        """Return the input of an attention, or of the last norm of the encoder.

        ``until`` is the layer of the attention, and whether it is cross-attention.
        """
        parts = {"word": self.heard[stack.block[0].layer[0].layer_norm][0]}
        for number, block in enumerate(stack.block):
            for place, name in enumerate(("decoder", "cross") if stack.is_decoder else ("",)):
                if (number, bool(place)) == until:
                    return parts
                attention = block.layer[place].EncDecAttention if place else block.layer[place].SelfAttention
                parts |= self._heads(attention, f"{name} L{number}".strip())
            given, out = self.heard[block.layer[-1]]
            parts[f"feed-forward {number}"] = out - given
        return {prefix + name: vectors for name, vectors in parts.items()}

    @torch.no_grad()
    def table(self, part: str, layer: int, head: int, query: int, key: int) -> tuple[Table, float]:
        """Return the score of two tokens pair by pair, and as a whole.

        The distance is the part of the whole that the pairs do not contain.
        """
        decoder, crosses = self.model.decoder, part == "cross"
        sublayer = decoder.block[layer].layer[crosses]
        of_query = of_key = self._normed(self._stream(decoder, "", (layer, crosses)), sublayer.layer_norm)
        attention = sublayer.EncDecAttention if crosses else sublayer.SelfAttention
        if crosses:
            encoder = self.model.encoder
            of_key = self._normed(self._stream(encoder, "encoder ", (-1, False)), encoder.final_layer_norm)
        d = attention.key_value_proj_dim
        at = slice(head * d, (head + 1) * d)
        w_q, w_k = attention.q.weight.T[:, at], attention.k.weight.T[:, at]
        table = {(a, b): float(x[query] @ w_q @ (y[key] @ w_k)) for a, x in of_query.items() for b, y in of_key.items()}
        score = float(self.heard[attention.q][1][query, at] @ self.heard[attention.k][1][key, at])
        if not crosses:
            biases = decoder.block[0].layer[0].SelfAttention.compute_bias(query + 1, query + 1)
            table[DISTANCE, DISTANCE] = float(biases[0, head, query, key])
            score += table[DISTANCE, DISTANCE]
        return table, score
