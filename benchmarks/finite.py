"""What difficult gradients do to every optimizer of steepest or Optax.

    python -m benchmarks.finite [steepest|optax]

Each optimizer runs with its defaults, in four precisions, on six kinds of gradients,
three compiled steps each. A case fails if an update or a number in the state is not
finite, if a dtype in the state changes, or if the step raises an error.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

HUGE = {"float16": 3e4, "bfloat16": 1e18, "float32": 1e18, "float64": 1e150}
NAMES = (
    "adabelief adadelta adafactor adagrad adam adamax adamaxw adamw adan amsgrad "
    "fromage lamb lars lion nadam nadamw noisy_sgd novograd optimistic_adam_v2 "
    "optimistic_gradient_descent radam rmsprop rprop sgd sign_sgd signum sm3 yogi "
    "polyak_sgd contrib.acprop contrib.ademamix contrib.simplified_ademamix "
    "contrib.adopt contrib.cocob contrib.dadapt_adamw contrib.dog contrib.dowg "
    "contrib.galore contrib.madgrad contrib.momo contrib.momo_adam contrib.muon "
    "contrib.prodigy contrib.schedule_free_adamw contrib.schedule_free_sgd"
).split()
NUMBERS = {
    "learning_rate": 1e-3,
    "adam_learning_rate": 1e-3,
    "weight_decay": 1e-4,
    "rank": 2,
    "eta": 0.01,
}


def maker(library: Any, name: str) -> Callable[[], Any]:
    """The optimizer with its defaults, and values for arguments that have none."""
    f = library
    for part in name.split("."):
        f = getattr(f, part)
    given = {
        x.name: NUMBERS[x.name]
        for x in inspect.signature(f).parameters.values()
        if x.default is x.empty and x.name in NUMBERS
    }
    if name == "noisy_sgd":
        given["key"] = 0
    return lambda: f(**given)


def gradients(params: Any, dtype: str) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Every kind of difficult gradient: its name, and a function of the step."""
    info, huge = jnp.finfo(dtype), HUGE[dtype]
    fill = lambda x: jax.tree.map(lambda p: jnp.full_like(p, x), params)
    one = {**fill(1.0), "w": jnp.ones_like(params["w"]).at[0, 0].set(0)}
    yield "zero", lambda t: fill(0.0)
    yield "one zero", lambda t: one
    yield "tiny", lambda t: fill(1e-7)
    yield "denormal", lambda t: fill(float(info.smallest_subnormal))
    yield "huge", lambda t: fill(huge)
    yield "alternating", lambda t: fill(huge * (-1.0) ** t)


def fails(make: Callable[[], Any], dtype: str) -> list[str]:
    """The kinds of gradients that fail."""
    params = {
        "w": (jnp.arange(64).reshape(8, 8) / 64).astype(dtype),
        "b": jnp.ones(8, dtype),
    }
    bad = []
    try:
        tx = make()
        begin, update = tx.init(params), jax.jit(tx.update)
    except Exception as error:
        kinds = [kind for kind, _ in gradients(params, dtype)]
        return [f"{kind} ({type(error).__name__})" for kind in kinds]
    for kind, at in gradients(params, dtype):
        try:
            state, fine = begin, True
            for t in range(3):
                extra = {"value": jnp.asarray(1.0, dtype)}
                u, state = update(at(t), state, params, **extra)
                numbers = [np.asarray(x, float) for x in _numbers((u, state))]
                fine &= all(np.isfinite(x).all() for x in numbers)
            fine &= _dtypes(state) == _dtypes(begin)
            if not fine:
                bad.append(kind)
        except Exception as error:
            bad.append(f"{kind} ({type(error).__name__})")
    return bad


def _numbers(tree: Any) -> list[Any]:
    leaves = map(jnp.asarray, jax.tree.leaves(tree))
    return [x for x in leaves if jnp.issubdtype(x.dtype, jnp.inexact)]


def _dtypes(tree: Any) -> list[Any]:
    return [jnp.asarray(x).dtype for x in jax.tree.leaves(tree)]


def main() -> None:
    """Print the failures and their number."""
    for name in sys.argv[1:] or ["steepest", "optax"]:
        library = import_module(name)
        import_module(f"{name}.contrib")
        tried = failed = 0
        for optimizer in NAMES:
            for dtype in HUGE:
                with jax.enable_x64(dtype == "float64"):
                    bad = fails(maker(library, optimizer), dtype)
                tried, failed = tried + 6, failed + len(bad)
                if bad:
                    print(f"{name}.{optimizer} {dtype}: {', '.join(bad)}", flush=True)
        print(f"{name}: {failed} of {tried} cases failed", flush=True)


if __name__ == "__main__":
    main()
