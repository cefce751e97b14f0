"""Bad calls of functions that select leaves by path."""

import steepest

from ._bad import Bad, params

BAD = {
    "matching": Bad(
        lambda: steepest.matching("bias|(scale"),
        ValueError,
        "matching: the pattern 'bias|(scale' is invalid at position 5: missing ), "
        "unterminated subpattern. Fix the regular expression, or use `re.escape` on "
        "plain text.",
    ),
    "not_matching": Bad(
        lambda: steepest.not_matching(["bias", "scale"]),
        TypeError,
        "not_matching: a pattern is ['bias', 'scale'], a list, expected a regular "
        'expression: a string such as "bias|scale".',
    ),
    "route": Bad(
        lambda: steepest.route({"bias": None, "w": steepest.sgd(0.1)}).init(params()),
        ValueError,
        "route: no pattern matches b; the patterns are ['bias', 'w']. Add `\".*\"` as "
        "the last pattern for all other leaves, with `None` to freeze them.",
    ),
    "tree.as_patterns": Bad(
        lambda: steepest.tree.as_patterns("me", ["a", "*"]),
        ValueError,
        "me: the pattern '*' is invalid at position 0: nothing to repeat. Fix the "
        "regular",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING = {
    "tree.first_matches": "patterns are already checked, and every tree has paths",
    "tree.key_paths": "every tree has paths",
    "tree.values_by_keys": "returns None if two trees have nothing in common",
}
