"""Protocols: which objects they accept."""

import steepest


class _Plateau:
    """Halves its result whenever the loss is given."""

    def init(self):
        return 1.0

    def update(self, state, *, value=None, **extra_args):
        return state if value is None else state / 2

    def __call__(self, state, **extra_args):
        return state


def test_a_stateful_schedule_is_known_at_run_time():
    assert isinstance(_Plateau(), steepest.StatefulSchedule)


def test_a_function_is_no_stateful_schedule():
    assert not isinstance(lambda count: 0.1, steepest.StatefulSchedule)
    assert not isinstance(steepest.constant_schedule(0.1), steepest.StatefulSchedule)


def test_a_transformation_is_no_stateful_schedule():
    """It has `init` and `update`, but is not callable."""
    assert not isinstance(steepest.identity(), steepest.StatefulSchedule)
