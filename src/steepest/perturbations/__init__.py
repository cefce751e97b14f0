"""Smooth versions of functions that jump, by noise."""

from ._make_perturbed_fun import make_perturbed_fun as make_perturbed_fun
from ._noise import Gumbel as Gumbel, Normal as Normal
