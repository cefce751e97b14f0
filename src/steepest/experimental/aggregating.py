"""Aggregate the gradients of single examples, and track their mean and variance."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._accumulate import (
        accumulate_avg_updates as accumulate_avg_updates,
        AccumulateAvgUpdatesState as AccumulateAvgUpdatesState,
        average_incrementally_updates as average_incrementally_updates,
    )
    from ._aggregator import (
        Aggregator as Aggregator,
        AggregatorUpdateFn as AggregatorUpdateFn,
        average_per_element_updates as average_per_element_updates,
        get_batch_size_from_per_elt_updates as get_batch_size_from_per_elt_updates,
        process as process,
    )
    from ._variance import (
        add_mean_variance_to_opt as add_mean_variance_to_opt,
        get_per_element_mean_and_sum_sq_diff_grads as get_per_element_mean_and_sum_sq_diff_grads,  # noqa: E501
        get_unbiased_mean_and_variance_ema as get_unbiased_mean_and_variance_ema,
        PerElementMeanAndSumSqDiffGradsState as PerElementMeanAndSumSqDiffGradsState,
        PerElementMeanAndVarianceEMAState as PerElementMeanAndVarianceEMAState,
        track_per_element_mean_and_variance_with_ema as track_per_element_mean_and_variance_with_ema,  # noqa: E501
    )
