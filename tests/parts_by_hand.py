"""Compute the parts of scores in float64, with loops over heads, queries and keys.

There is one class per kind of model; each reads transformers' own modules.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch

Vectors = dict[str, torch.Tensor]  # by the name of the part: [n, d_model]
Table = dict[tuple[str, str], float]

SHIFTS, BIASES, QK_BIASES, ROTATION, DISTANCE = (
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
        """Return the epsilon of the norms."""
        return float(self.model.config.layer_norm_eps)

    # ---- Methods that differ between models ----------------------------------------------------------------------

    def embed(self) -> Vectors:
        """Return the input of the first layer, in parts."""
        e = self.model.embeddings
        types = e.token_type_embeddings.weight[0].expand(self.n, -1)
        parts = {
            "word": e.word_embeddings.weight[self.ids],
            "position": e.position_embeddings.weight[: self.n],
            "type": types,
        }
        return self.normalize(parts, e.LayerNorm)

    def linear(self, layer: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W [d_model, out] and b [out] of "q", "k", "v" or "o"."""
        attention = self.model.encoder.layer[layer].attention
        names = {"q": "query", "k": "key", "v": "value"}
        module = attention.output.dense if which == "o" else getattr(attention.self, names[which])
        return module.weight.T, module.bias

    def compute_attention_input(self, layer: int, parts: Vectors) -> Vectors:
        """Return the input of a layer's attention, given the residual stream before the layer."""
        return parts

    def compute_layer_output(self, layer: int, parts: Vectors) -> Vectors:
        """Return the output of a layer, given its input and head outputs as parts."""
        block = self.model.encoder.layer[layer]
        parts = self.normalize(parts, block.attention.output.LayerNorm)
        x = total(parts)
        parts = parts | {f"feed-forward {layer}": block.output.dense(block.intermediate(x))}
        return self.normalize(parts, block.output.LayerNorm)

    def rotate(self, layer: int, vectors: torch.Tensor) -> torch.Tensor:
        """Rotate queries or keys [n, d_k] by their positions."""
        return vectors

    def is_masked(self, query: int, key: int) -> bool:
        """Return whether a key is masked for a query."""
        return False

    def scaling(self, d_k: int) -> float:
        """Return the factor of the scores."""
        return d_k**-0.5

    def distances(self, layer: int, head: int, query: int, key: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the vectors of relative positions for a query and a key, or None."""
        return None

    # ---- Methods common to all models ----------------------------------------------------------------------------

    def normalize(self, parts: Vectors, module: Any) -> Vectors:
        """Apply a layer norm to each part, token by token."""
        x = total(parts)
        normalized = {name: torch.zeros_like(x) for name in parts}
        for token in range(self.n):
            deviation = math.sqrt(float(((x[token] - x[token].mean()) ** 2).mean()) + self.eps)
            for name, vectors in parts.items():
                normalized[name][token] = (vectors[token] - vectors[token].mean()) / deviation * module.weight
        normalized[SHIFTS] = normalized.get(SHIFTS, torch.zeros_like(x)) + module.bias
        return normalized

    def get_head_columns(self, layer: int, head: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the columns of W and b that belong to a head. Heads may share keys and values."""
        weight, bias = self.linear(layer, which)
        d_k = self.linear(layer, "q")[0].shape[1] // self.heads
        group = head // (self.heads * d_k // weight.shape[1])
        return weight[:, group * d_k : (group + 1) * d_k], bias[group * d_k : (group + 1) * d_k]

    def compute_input(self, layer: int) -> Vectors:
        """Return the input of a layer's attention, in parts."""
        parts = self.embed()
        for lower in range(layer):
            input_, head_outputs = self.compute_attention_input(lower, parts), {}
            weight, bias = self.linear(lower, "o")
            for head in range(self.heads):
                weights = self.scores(lower, head, total(input_)).softmax(-1)
                w_v, b_v = self.get_head_columns(lower, head, "v")
                context = weights @ (total(input_) @ w_v + b_v)
                d_v = context.shape[1]
                head_outputs[f"L{lower}H{head}"] = context @ weight[head * d_v : (head + 1) * d_v]
            biases = parts.get(BIASES, torch.zeros_like(total(parts))) + bias
            parts = self.compute_layer_output(lower, parts | head_outputs | {BIASES: biases})
        return self.compute_attention_input(layer, parts)

    def scores(self, layer: int, head: int, x: torch.Tensor) -> torch.Tensor:
        """Compute the scores [query, key] one by one."""
        (w_q, b_q), (w_k, b_k) = (self.get_head_columns(layer, head, which) for which in "qk")
        q, k = self.rotate(layer, x @ w_q + b_q), self.rotate(layer, x @ w_k + b_k)
        plain_q, plain_k = x @ w_q + b_q, x @ w_k + b_k
        scores = torch.full((self.n, self.n), -math.inf, dtype=torch.float64)
        for i in range(self.n):
            for j in range(self.n):
                if not self.is_masked(i, j):
                    score = q[i] @ k[j]
                    relative = self.distances(layer, head, i, j)
                    if relative is not None:
                        score = score + plain_q[i] @ relative[0] + plain_k[j] @ relative[1]
                    scores[i, j] = score * self.scaling(q.shape[1])
        return scores

    @torch.no_grad()
    def table(self, layer: int, head: int, query: int, key: int) -> tuple[Table, float]:
        """Return the contribution of each pair of parts to the score of two tokens, and the score."""
        parts = self.compute_input(layer)
        score = float(self.scores(layer, head, total(parts))[query, key])
        sides = []
        for which in "qk":
            weight, bias = self.get_head_columns(layer, head, which)
            sides.append({name: x @ weight for name, x in parts.items()} | {QK_BIASES: bias.expand(self.n, -1)})
        factor = self.scaling(next(iter(sides[0].values())).shape[1])
        table = {(a, b): float(q[query] @ k[key]) * factor for a, q in sides[0].items() for b, k in sides[1].items()}
        rotated = [{name: self.rotate(layer, vectors) for name, vectors in side.items()} for side in sides]
        rotated_sum = sum(float(q[query] @ k[key]) * factor for q in rotated[0].values() for k in rotated[1].values())
        table[ROTATION, ROTATION] = rotated_sum - sum(table.values())
        relative = self.distances(layer, head, query, key)
        if relative is not None:
            table |= {(name, DISTANCE): float(q[query] @ relative[0]) * factor for name, q in sides[0].items()}
            table |= {(DISTANCE, name): float(k[key] @ relative[1]) * factor for name, k in sides[1].items()}
        return table, score


def total(parts: Vectors) -> torch.Tensor:
    """Return the sum of all parts, [n, d_model]."""
    return torch.stack(list(parts.values())).sum(0)


class Gpt2(Bert):
    """Pre-norm and causal: GPT-2."""

    def epsilon(self) -> float:
        return float(self.model.config.layer_norm_epsilon)

    def embed(self) -> Vectors:
        return {"word": self.model.wte.weight[self.ids], "position": self.model.wpe.weight[: self.n]}

    def linear(self, layer: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        attention = self.model.h[layer].attn
        if which == "o":
            return attention.c_proj.weight, attention.c_proj.bias
        d = self.model.config.n_embd
        columns = slice("qkv".index(which) * d, ("qkv".index(which) + 1) * d)
        return attention.c_attn.weight[:, columns], attention.c_attn.bias[columns]

    def compute_attention_input(self, layer: int, parts: Vectors) -> Vectors:
        return self.normalize(parts, self.model.h[layer].ln_1)

    def compute_layer_output(self, layer: int, parts: Vectors) -> Vectors:
        block = self.model.h[layer]
        return parts | {f"feed-forward {layer}": block.mlp(block.ln_2(total(parts)))}

    def is_masked(self, query: int, key: int) -> bool:
        return key > query


class Llama(Bert):
    """Pre-norm with RMS norms, causal, with rotary positions and shared keys: Llama."""

    def epsilon(self) -> float:
        return float(self.model.config.rms_norm_eps)

    def embed(self) -> Vectors:
        return {"word": self.model.embed_tokens.weight[self.ids]}

    def linear(self, layer: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        weight = getattr(self.model.layers[layer].self_attn, f"{which}_proj").weight.T
        return weight, weight.new_zeros(weight.shape[1])

    def normalize(self, parts: Vectors, module: Any) -> Vectors:
        x = total(parts)
        size = ((x**2).mean(-1, keepdim=True) + self.eps).sqrt()
        return {name: vectors / size * module.weight for name, vectors in parts.items()}

    def compute_attention_input(self, layer: int, parts: Vectors) -> Vectors:
        return self.normalize(parts, self.model.layers[layer].input_layernorm)

    def compute_layer_output(self, layer: int, parts: Vectors) -> Vectors:
        block, x = self.model.layers[layer], total(parts)
        normalized = self.normalize({"x": x}, block.post_attention_layernorm)["x"]
        return parts | {f"feed-forward {layer}": block.mlp(normalized)}

    def rotate(self, layer: int, vectors: torch.Tensor) -> torch.Tensor:
        base, half = self.model.config.rope_parameters["rope_theta"], vectors.shape[1] // 2
        rotated = vectors.clone()
        for position in range(len(vectors)):
            for pair in range(half):
                angle = position / base ** (pair / half)
                first, second = vectors[position, pair], vectors[position, pair + half]
                rotated[position, pair] = first * math.cos(angle) - second * math.sin(angle)
                rotated[position, pair + half] = second * math.cos(angle) + first * math.sin(angle)
        return rotated

    def is_masked(self, query: int, key: int) -> bool:
        return key > query


class Deberta(Bert):
    """Post-norm with relative positions: DeBERTa."""

    def embed(self) -> Vectors:
        e = self.model.embeddings
        return self.normalize({"word": e.word_embeddings.weight[self.ids]}, e.LayerNorm)

    def linear(self, layer: int, which: str) -> tuple[torch.Tensor, torch.Tensor]:
        attention = self.model.encoder.layer[layer].attention
        names = {"q": "query_proj", "k": "key_proj", "v": "value_proj"}
        module = attention.output.dense if which == "o" else getattr(attention.self, names[which])
        return module.weight.T, module.bias

    def scaling(self, d_k: int) -> float:
        return (3 * d_k) ** -0.5

    def distances(self, layer: int, head: int, query: int, key: int) -> tuple[torch.Tensor, torch.Tensor]:
        span = self.model.config.position_buckets
        longest = self.model.config.max_position_embeddings
        rows = self.model.encoder.get_rel_embedding()
        (w_q, b_q), (w_k, b_k) = (self.get_head_columns(layer, head, which) for which in "qk")
        forward = min(max(bucket(query - key, span, longest) + span, 0), 2 * span - 1)
        backward = min(max(-bucket(key - query, span, longest) + span, 0), 2 * span - 1)
        return rows[forward] @ w_k + b_k, rows[backward] @ w_q + b_q


def bucket(distance: int, size: int, longest: int) -> int:
    """Return the bucket of a distance.

    Distances up to half of ``size`` have one bucket each; longer distances share buckets.
    """
    half = size // 2
    if abs(distance) <= half:
        return distance
    bucket_ = math.ceil(math.log(abs(distance) / half) / math.log((longest - 1) / half) * (half - 1)) + half
    return bucket_ if distance > 0 else -bucket_


BY_HAND = {"bert": Bert, "gpt2": Gpt2, "llama": Llama, "deberta-v2": Deberta}


class T5:
    """Self- and cross-attention of T5's decoder, from the inputs and outputs that hooks record in one float64 pass."""

    def __init__(self, model: Any, source: list[int], target: list[int]) -> None:
        self.model = copy.deepcopy(model).double()
        self.recorded: dict[Any, tuple[torch.Tensor, torch.Tensor]] = {}  # input and output of each module
        for module in self.model.modules():
            if not list(module.children()) or type(module).__name__ == "T5LayerFF":
                module.register_forward_hook(self._record)
        with torch.no_grad():
            self.model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]), use_cache=False)

    def _record(self, module: Any, inputs: Any, out: torch.Tensor) -> None:
        if inputs[0].is_floating_point():
            self.recorded[module] = inputs[0][0], out[0]

    def _split_heads(self, attention: Any, name: str) -> Vectors:
        context, weight = self.recorded[attention.o][0], attention.o.weight.T
        d = attention.key_value_proj_dim
        columns = [slice(head * d, (head + 1) * d) for head in range(attention.n_heads)]
        return {f"{name}H{head}": context[:, part] @ weight[part] for head, part in enumerate(columns)}

    def _normalize(self, parts: Vectors, norm: Any) -> Vectors:
        size = (total(parts).pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).sqrt()
        return {name: vectors / size * norm.weight for name, vectors in parts.items()}

    def _compute_stream(self, stack: Any, prefix: str, until: tuple[int, bool]) -> Vectors:
        """Return the residual stream before an attention, or before the last norm of the encoder, in parts.

        ``until`` is the layer of the attention, and whether it is cross-attention.
        """
        parts = {"word": self.recorded[stack.block[0].layer[0].layer_norm][0]}
        for number, block in enumerate(stack.block):
            for is_cross, name in enumerate(("decoder", "cross") if stack.is_decoder else ("",)):
                if (number, bool(is_cross)) == until:
                    return parts
                attention = block.layer[is_cross].EncDecAttention if is_cross else block.layer[is_cross].SelfAttention
                parts |= self._split_heads(attention, f"{name} L{number}".strip())
            input_, output = self.recorded[block.layer[-1]]
            parts[f"feed-forward {number}"] = output - input_
        return {prefix + name: vectors for name, vectors in parts.items()}

    @torch.no_grad()
    def table(self, part: str, layer: int, head: int, query: int, key: int) -> tuple[Table, float]:
        """Return the contribution of each pair of parts to the score of two tokens, and the score.

        The relative position is a separate contribution.
        """
        decoder, is_cross = self.model.decoder, part == "cross"
        sublayer = decoder.block[layer].layer[is_cross]
        queries = keys = self._normalize(self._compute_stream(decoder, "", (layer, is_cross)), sublayer.layer_norm)
        attention = sublayer.EncDecAttention if is_cross else sublayer.SelfAttention
        if is_cross:
            encoder = self.model.encoder
            keys = self._normalize(self._compute_stream(encoder, "encoder ", (-1, False)), encoder.final_layer_norm)
        d = attention.key_value_proj_dim
        columns = slice(head * d, (head + 1) * d)
        w_q, w_k = attention.q.weight.T[:, columns], attention.k.weight.T[:, columns]
        table = {(a, b): float(x[query] @ w_q @ (y[key] @ w_k)) for a, x in queries.items() for b, y in keys.items()}
        score = float(self.recorded[attention.q][1][query, columns] @ self.recorded[attention.k][1][key, columns])
        if not is_cross:
            biases = decoder.block[0].layer[0].SelfAttention.compute_bias(query + 1, query + 1)
            table[DISTANCE, DISTANCE] = float(biases[0, head, query, key])
            score += table[DISTANCE, DISTANCE]
        return table, score
