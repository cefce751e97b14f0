"""The GPT-2 of `gpt.py` in torch: activations are computed again, products in bfloat16.

It is plain torch with a fused AdamW, without `torch.compile`. Attention is torch's own.
"""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any

import jax
import numpy as np

from .gpt import HEAD
from .processes import Numbers


def trained(
    shapes: Any, rate: float, batches: Iterator[np.ndarray], rounds: int, row: int
) -> Numbers:
    """The numbers of some steps of AdamW in float32, by quantity.

    Args:
        shapes: the leaves, from `trees.stacked_gpt`.
        rate: the learning rate.
        batches: the tokens of each step.
        rounds: the number of rounds that count; one is a warm-up.
        row: the steps of a round.
    """
    torch: Any = import_module("torch")
    cuda = torch.cuda.is_available()
    wait = torch.cuda.synchronize if cuda else lambda: None
    torch.manual_seed(0)
    params = init(torch, shapes, "cuda" if cuda else "cpu")
    leaves = jax.tree.leaves(params)
    # The weight decay of Optax and steepest; torch's own default is 0.01.
    tx = torch.optim.AdamW(leaves, lr=rate, weight_decay=1e-4, fused=cuda)
    losses: list[Any] = []

    def steps() -> float:
        wait()
        start = perf_counter()
        for _ in range(row):
            tokens = torch.from_numpy(next(batches)).long().to(leaves[0].device)
            value = loss(torch, params, tokens)
            value.backward()
            tx.step()
            tx.zero_grad(set_to_none=True)
            losses.append(value.detach())
        wait()
        return (perf_counter() - start) / row

    steps()
    times = [steps() for _ in range(rounds)]
    size = lambda tensors: sum(x.numel() * x.element_size() for x in tensors)
    kept = [x for one in tx.state.values() for x in one.values() if torch.is_tensor(x)]
    weights, state = size(leaves), size(kept)
    found: dict[str, list[float]] = {
        "step": times,
        "weights": [weights],
        "state": [state],
        "gradients": [weights],
        "first loss": [float(losses[0])],
        "loss": [float(sum(losses[-row:])) / row],
    }
    if cuda:  # torch does not count the memory of a CPU
        found["peak"] = [torch.cuda.max_memory_allocated()]
        found["rest"] = [torch.cuda.memory_allocated()]
    return found


def init(torch: Any, shapes: Any, device: str) -> dict[str, Any]:
    """Random weights, of the sizes of `gpt.init`; the layers are not stacked.

    Args:
        torch: the package.
        shapes: the leaves, from `trees.stacked_gpt`.
        device: where to put them.
    """
    layers = shapes["layers"]["qkv"]["weight"].shape[0]

    def make(path: Any, shape: tuple[int, ...]) -> Any:
        *_, kind, last = ("", *(str(step.key) for step in path))
        if last in ("bias", "scale"):
            x = torch.full(shape, float(last == "scale"), device=device)
        else:
            small = (2 * layers) ** -0.5 if kind in ("projection", "down") else 1.0
            x = torch.randn(shape, device=device).mul_(0.02 * small)
        return x.requires_grad_()

    walk = jax.tree.map_with_path
    outer = {name: x for name, x in shapes.items() if name != "layers"}
    one = lambda: walk(lambda path, x: make(path, x.shape[1:]), shapes["layers"])
    params = walk(lambda path, x: make(path, x.shape), outer)
    return params | {"layers": [one() for _ in range(layers)]}


def loss(torch: Any, params: Any, tokens: Any) -> Any:
    """The mean cross-entropy of a token, given those before it, in nats.

    Args:
        torch: the package.
        params: the weights, from `init`.
        tokens: integers, `[sequences, context + 1]`.
    """
    again = partial(
        import_module("torch.utils.checkpoint").checkpoint, use_reentrant=False
    )
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    # Without its cache, autocast does not keep a bfloat16 copy of all weights.
    half = torch.bfloat16
    with torch.autocast(tokens.device.type, half, cache_enabled=False):
        embed = torch.nn.functional.embedding
        places = params["positions"][: inputs.shape[1]]
        x = embed(inputs, params["tokens"]).to(half) + places.to(half)
        for p in params["layers"]:
            x = again(_layer, torch, x, p)
        sums = [
            again(_nats, torch, params, x[k], targets[k]) for k in range(len(tokens))
        ]
    return sum(sums) / targets.numel()


def _layer(torch: Any, x: Any, p: Any) -> Any:
    f = torch.nn.functional
    heads = (*x.shape[:2], x.shape[2] // HEAD, HEAD)
    parts = _linear(p["qkv"], _norm(f, p["norm_1"], x)).chunk(3, dim=-1)
    q, k, v = (part.reshape(heads).transpose(1, 2) for part in parts)
    mixed = f.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + _linear(p["projection"], mixed.transpose(1, 2).reshape(x.shape))
    wide = f.gelu(_linear(p["up"], _norm(f, p["norm_2"], x)), approximate="tanh")
    return x + _linear(p["down"], wide)


def _nats(torch: Any, params: Any, x: Any, targets: Any) -> Any:
    """The cross-entropy of one sequence, as a sum."""
    f = torch.nn.functional
    logits = _norm(f, params["norm"], x) @ params["tokens"].T
    return f.cross_entropy(logits.float(), targets, reduction="sum")


def _linear(p: Any, x: Any) -> Any:
    return x @ p["weight"] + p["bias"].to(x.dtype)


def _norm(f: Any, p: Any, x: Any) -> Any:
    return f.layer_norm(x, x.shape[-1:], p["scale"], p["bias"]).to(x.dtype)
