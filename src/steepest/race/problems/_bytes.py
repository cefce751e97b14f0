"""A transformer trained on the source of Python's standard library."""

import sysconfig
from collections.abc import Sequence
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt8

from steepest import losses

from .._problem import Problem

Params = dict[str, dict[str, Array]]
Text = Int[Array, "windows places"]

_BATCH, _HEADS = 8, 4

# Modules that are plain Python in all versions from 3.11 to 3.14.
_TRAIN = """
argparse ast base64 bdb calendar cmd code codecs configparser contextlib copy csv
dataclasses difflib dis enum fileinput fractions ftplib functools getopt gettext heapq
ipaddress locale mimetypes ntpath os pdb pickle platform plistlib posixpath pprint
pyclbr random sched selectors shelve shutil site smtplib socket socketserver subprocess
tempfile timeit tokenize trace traceback tracemalloc types typing uuid warnings weakref
webbrowser
""".split()
_HELD_OUT = "bisect colorsys filecmp glob graphlib shlex textwrap threading".split()


def bytes_() -> Problem:
    """Python's standard library: a small byte-level transformer learns its source.

    It has two layers of width 64, four heads and a context of 64 bytes. The metric is
    the cross-entropy on held-out files, in bits per byte; random bytes would need 8.
    """
    return _transformer(
        layers=2,
        width=64,
        places=64,
        windows=128,
        name="bytes",
        about="A small transformer learns the source of Python's standard library.",
        target=3.0,
        steps=800,
        optimizers=("adamw", "adan", "muon", "schedule_free_adamw"),
        learning_rates=(1e-3, 3e-3, 1e-2, 3e-2),
    )


def small_bytes() -> Problem:
    """Smaller than `bytes`: five optimizers in less than two minutes on two cores.

    The transformer has one layer of width 48, four heads and a context of 32 bytes.
    """
    return _transformer(
        layers=1,
        width=48,
        places=32,
        windows=64,
        name="small_bytes",
        about="A tiny transformer learns the source of Python's standard library.",
        target=3.75,
        steps=250,
        seeds=5,
        optimizers=(
            "sgd(momentum=0.9)",
            "adamw",
            "lion",
            "muon",
            "schedule_free_adamw",
        ),
        learning_rates=(1e-3, 4e-3, 1.6e-2, 6.3e-2, 0.25, 1.0),
    )


def _transformer(
    *, layers: int, width: int, places: int, windows: int, **fields: Any
) -> Problem:
    """The problem with a transformer of some size; `fields` are those of `Problem`."""
    return Problem(
        init=partial(_init, layers, width, places),
        loss=_nats,
        batches=partial(_batches, places),
        metric=lambda params, data: _nats(params, data["test"]) / log(2),
        data={
            "train": _source(_TRAIN),
            "test": _windows(_source(_HELD_OUT), windows, places),
        },
        measure="bits per byte",
        better="lower",
        **fields,
    )


def _source(modules: Sequence[str]) -> UInt8[np.ndarray, " bytes"]:
    """The source of modules of the standard library, concatenated."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    paths = [folder / f"{name}.py" for name in modules]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"race: the problem `bytes` reads the source of Python's standard library, "
            f"but {folder} has no {', '.join(missing[:3])}"
            f"{', ...' if missing[3:] else ''}. Use a Python that includes its source, "
            "or another problem."
        )
    text = b"".join(path.read_bytes() for path in paths)
    return np.frombuffer(text, np.uint8)


def _windows(
    text: UInt8[np.ndarray, " bytes"], windows: int, places: int
) -> UInt8[np.ndarray, "windows places"]:
    """Evenly spaced windows of a text, with one extra byte for the last target."""
    starts = np.linspace(0, len(text) - places - 1, windows).astype(int)
    return text[starts[:, None] + np.arange(places + 1)]


def _batches(
    places: int, key: Key[Array, ""], data: dict[str, Array]
) -> UInt8[Array, "windows places"]:
    starts = jax.random.randint(key, (_BATCH,), 0, len(data["train"]) - places)
    return data["train"][starts[:, None] + jnp.arange(places + 1)[None, :]]


def _init(layers: int, width: int, places: int, key: Key[Array, ""]) -> Params:
    keys = iter(jax.random.split(key, 3 + 6 * layers))
    d = width

    def matrix(rows: int, columns: int, size: float) -> Array:
        return size * jax.random.normal(next(keys), (rows, columns), jnp.float32)

    def layer() -> dict[str, Array]:
        into = d**-0.5
        out = into / (2 * layers) ** 0.5  # keeps the sum of the layers small
        return {
            "attend_norm": jnp.ones(d, jnp.float32),
            "query": matrix(d, d, into),
            "key": matrix(d, d, into),
            "value": matrix(d, d, into),
            "mix": matrix(d, d, out),
            "think_norm": jnp.ones(d, jnp.float32),
            "widen": matrix(d, 4 * d, into),
            "narrow": matrix(4 * d, d, out / 2),
        }

    return {
        "embed": {"bytes": matrix(256, d, 1.0), "places": matrix(places, d, 1.0)},
        **{f"layer{k}": layer() for k in range(layers)},
        "head": {"norm": jnp.ones(d, jnp.float32), "kernel": matrix(d, 256, 0.02)},
    }


def _nats(params: Params, windows: UInt8[Array, "windows places"]) -> Float[Array, ""]:
    """The mean cross-entropy of a byte, given those before it in its window."""
    inputs, targets = windows[:, :-1], windows[:, 1:].astype(jnp.int32)
    scores = _scores(params, inputs.astype(jnp.int32))
    return jnp.mean(losses.softmax_cross_entropy_with_integer_labels(scores, targets))


def _scores(params: Params, inputs: Text) -> Float[Array, "windows places 256"]:
    embed, head = params["embed"], params["head"]
    x = embed["bytes"][inputs] + embed["places"][None, :, :]
    for p in (params[name] for name in sorted(params) if name.startswith("layer")):
        x = x + _attend(p, _normal(x, p["attend_norm"]))
        wide = jax.nn.relu(_normal(x, p["think_norm"]) @ p["widen"])
        x = x + wide @ p["narrow"]
    return _normal(x, head["norm"]) @ head["kernel"]


def _attend(p: dict[str, Array], x: Array) -> Array:
    """Causal self-attention."""
    w, n, d = x.shape

    def several(name: str) -> Float[Array, "windows heads places width"]:
        return jnp.swapaxes((x @ p[name]).reshape(w, n, _HEADS, -1), 1, 2)

    queries, keys, values = map(several, ("query", "key", "value"))
    scores = queries @ jnp.swapaxes(keys, 2, 3) * (d // _HEADS) ** -0.5
    seen = jnp.tril(jnp.ones((n, n), bool))[None, None]
    share = jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    return jnp.swapaxes(share @ values, 1, 2).reshape(w, n, d) @ p["mix"]


def _normal(x: Array, scale: Float[Array, " width"]) -> Array:
    size = jnp.mean(x**2, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(size + 1e-6) * scale[None, None, :]
