"""States of other libraries, and ours for them."""

from ._optax import from_optax as from_optax, to_optax as to_optax
