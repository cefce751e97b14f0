"""`python -m steepest.race digits` is `steepest race digits`.

The other commands work too: `python -m steepest.race optimizers`.
"""

import sys

from .terminal import main

_OTHERS = "completion", "describe", "find-lr", "optimizers", "plot-schedule"
_OTHERS += "problems", "race"
_FLAGS = "--help", "-h", "--version"

if __name__ == "__main__":
    tokens = sys.argv[1:]
    bare = bool(tokens) and tokens[0] not in _OTHERS + _FLAGS
    raise SystemExit(main(["race", *tokens] if bare else tokens))
