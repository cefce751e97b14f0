"""What a leaf is for, as the names in its path say."""

import re
from typing import NamedTuple

# Patterns for paths, in order of priority. They match the key names of flax, Equinox,
# Haiku and torch. A path may end in `value`, where an object holds the array.
_NAMES = [
    (re.compile(pattern, re.IGNORECASE), what, decays)
    for pattern, what, decays in (
        (r"norm|(^|/)ln_?\w?\d*(?=/|$)", "a norm", False),
        (
            r"(^|[/_])(bias|scale|gain|gamma|offset)(?=(/value)?$)"
            r"|(^|/)b_?\d*(?=(/value)?$)",
            "a bias or a scale",
            False,
        ),
        (r"unembed|(^|/)(?!\w*multi_?head)\w*head_?\d*(?=/|$)", "a head", True),
        (r"logits|classifier|^(params/|model/)*output(?=/|$)", "a head", True),
        (
            r"embed|(^|[/_])(emb|wte|wpe|tok|pos|vocab)(?=[/_\d]|$)"
            r"|(^|/)(tokens|positions)(?=/|$)",
            "embeds",
            True,
        ),
        (r"router", "a router", True),
    )
]


class Named(NamedTuple):
    """What the path of a leaf says about it."""

    what: str  # such as "a norm" or "embeds"
    decays: bool  # whether weight decay is usual for it
    why: str  # the reason, such as "a norm: 'norm' in its path"


def named(path: str) -> Named | None:
    """What the names in a path say about the leaf; `None` if they say nothing.

    Args:
        path: the path of the leaf, from `key_paths`.

    >>> named("decoder/wte/embedding").why
    "embeds: 'wte' in its path"
    >>> named("decoder/mlp/kernel")
    """
    for pattern, what, decays in _NAMES:
        match = pattern.search(path)
        if match:
            text = match[0].strip("/_")
            return Named(what, decays, f"{what}: {text!r} in its path")
    return None
