"""Stores codes of bitsandbytes: `python -m tests.numerics._bitsandbytes`.

Made with bitsandbytes 0.50.2 and torch 2.13.0 on a CPU. The numbers are in float64:
for float32 its CPU kernel looks codes up in a table of 65536 equal parts of [-1, 1],
and half of these numbers, zero among them, get a code that is not the nearest.
"""

# pyright: reportMissingImports=false

from pathlib import Path

import numpy as np

STORED = Path(__file__).parent / "data" / "bitsandbytes.npz"


def main() -> None:
    """Store numbers of many sizes, and their codes and scales."""
    import torch
    from bitsandbytes.functional import create_dynamic_map

    x = (np.random.default_rng(0).normal(size=1000) ** 6).astype(np.float32)
    x[[3, 300]] = 0
    x[700:] *= 1e-6
    levels = create_dynamic_map(signed=False)
    encode = torch.ops.bitsandbytes.quantize_blockwise
    codes, scales = encode(torch.from_numpy(x).double(), levels, 256)
    levels, codes, scales = (x.numpy() for x in (levels, codes, scales))
    np.savez_compressed(STORED, x=x, levels=levels, codes=codes, scales=scales)


if __name__ == "__main__":
    main()
