"""Named algorithms, one file each."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._adabelief import (
        adabelief as adabelief,
        scale_by_belief as scale_by_belief,
        ScaleByBeliefState as ScaleByBeliefState,
    )
    from ._adadelta import (
        adadelta as adadelta,
        scale_by_adadelta as scale_by_adadelta,
        ScaleByAdaDeltaState as ScaleByAdaDeltaState,
    )
    from ._adafactor import (
        adafactor as adafactor,
        FactoredState as FactoredState,
        scale_by_factored_rms as scale_by_factored_rms,
    )
    from ._adagrad import (
        adagrad as adagrad,
        scale_by_rss as scale_by_rss,
        ScaleByRssState as ScaleByRssState,
    )
    from ._adam import (
        adam as adam,
        adamw as adamw,
        nadam as nadam,
        nadamw as nadamw,
        scale_by_adam as scale_by_adam,
        ScaleByAdamState as ScaleByAdamState,
    )
    from ._adamax import (
        adamax as adamax,
        adamaxw as adamaxw,
        scale_by_adamax as scale_by_adamax,
    )
    from ._adan import (
        adan as adan,
        scale_by_adan as scale_by_adan,
        ScaleByAdanState as ScaleByAdanState,
    )
    from ._amsgrad import (
        amsgrad as amsgrad,
        scale_by_amsgrad as scale_by_amsgrad,
        ScaleByAmsgradState as ScaleByAmsgradState,
    )
    from ._backtracking import (
        BacktrackingLinesearchInfo as BacktrackingLinesearchInfo,
        scale_by_backtracking_linesearch as scale_by_backtracking_linesearch,
        ScaleByBacktrackingLinesearchState as ScaleByBacktrackingLinesearchState,
    )
    from ._fromage import fromage as fromage
    from ._lamb import lamb as lamb
    from ._lars import lars as lars
    from ._lbfgs import (
        lbfgs as lbfgs,
        scale_by_lbfgs as scale_by_lbfgs,
        ScaleByLBFGSState as ScaleByLBFGSState,
    )
    from ._lion import (
        lion as lion,
        scale_by_lion as scale_by_lion,
        ScaleByLionState as ScaleByLionState,
    )
    from ._nag import nag as nag, NagState as NagState
    from ._noisy_sgd import noisy_sgd as noisy_sgd
    from ._novograd import (
        novograd as novograd,
        scale_by_novograd as scale_by_novograd,
        ScaleByNovogradState as ScaleByNovogradState,
    )
    from ._optimistic import (
        optimistic_adam as optimistic_adam,
        optimistic_adam_v2 as optimistic_adam_v2,
        optimistic_gradient_descent as optimistic_gradient_descent,
        scale_by_optimistic_gradient as scale_by_optimistic_gradient,
        ScaleByOptimisticGradientState as ScaleByOptimisticGradientState,
    )
    from ._polyak import polyak_sgd as polyak_sgd, scale_by_polyak as scale_by_polyak
    from ._radam import radam as radam, scale_by_radam as scale_by_radam
    from ._rmsprop import (
        rmsprop as rmsprop,
        scale_by_rms as scale_by_rms,
        scale_by_stddev as scale_by_stddev,
        ScaleByRmsState as ScaleByRmsState,
        ScaleByRmsWithCountState as ScaleByRmsWithCountState,
        ScaleByRStdDevState as ScaleByRStdDevState,
        ScaleByRStdDevWithCountState as ScaleByRStdDevWithCountState,
    )
    from ._rprop import (
        rprop as rprop,
        scale_by_rprop as scale_by_rprop,
        ScaleByRpropState as ScaleByRpropState,
    )
    from ._sgd import sgd as sgd
    from ._sign_sgd import scale_by_sign as scale_by_sign, sign_sgd as sign_sgd
    from ._signum import signum as signum
    from ._sm3 import (
        scale_by_sm3 as scale_by_sm3,
        ScaleBySM3State as ScaleBySM3State,
        sm3 as sm3,
    )
    from ._value_and_grad import value_and_grad_from_state as value_and_grad_from_state
    from ._yogi import scale_by_yogi as scale_by_yogi, yogi as yogi
    from ._zoom import (
        scale_by_zoom_linesearch as scale_by_zoom_linesearch,
        ScaleByZoomLinesearchState as ScaleByZoomLinesearchState,
        ZoomLinesearchInfo as ZoomLinesearchInfo,
    )
