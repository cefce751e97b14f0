"""Training steps made from a loss and an optimizer."""

from ._train_step import make_train_step as make_train_step
