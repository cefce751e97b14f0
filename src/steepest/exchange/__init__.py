"""States and transformations of other libraries, and ours for them."""

from ._install import install_as_optax as install_as_optax
from ._optax import from_optax as from_optax, to_optax as to_optax
