"""Named algorithms, one file each."""

from ._adam import (
    adam as adam,
    adamw as adamw,
    nadam as nadam,
    nadamw as nadamw,
    scale_by_adam as scale_by_adam,
    ScaleByAdamState as ScaleByAdamState,
)
from ._lion import (
    lion as lion,
    scale_by_lion as scale_by_lion,
    ScaleByLionState as ScaleByLionState,
)
from ._nag import nag as nag, NagState as NagState
from ._sgd import sgd as sgd
