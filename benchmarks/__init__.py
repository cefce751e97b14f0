"""steepest against Optax, in one process and one run: `python -m benchmarks`.

Numbers are reported as ratios: above 1, steepest is faster. `benchmarks.rows` describes
the format of the results; other programs can add to it. `python -m benchmarks.report`
turns the files in `benchmarks/results` into `docs/performance.md`.
"""
