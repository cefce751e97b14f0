"""Problems made of the models of other libraries, and of data loaders."""

from ._equinox import equinox_problem as equinox_problem
from ._functions import functions_problem as functions_problem
from ._linen import linen_problem as linen_problem
from ._nnx import nnx_problem as nnx_problem
