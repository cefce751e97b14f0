"""Make discontinuous functions smooth by adding noise to their input."""

from ._make_perturbed_fun import make_perturbed_fun as make_perturbed_fun
from ._noise import Gumbel as Gumbel, Normal as Normal
