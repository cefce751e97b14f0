"""From a loss and an optimizer to a training step."""

from ._train_step import make_train_step as make_train_step
