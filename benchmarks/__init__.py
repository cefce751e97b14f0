"""steepest against Optax, in one process and one run: `python -m benchmarks`.

Numbers are reported as ratios: above 1 steepest is ahead. What is kept of a run, and
what others may add in the same form, is described in `benchmarks.rows`; of the files
kept in `benchmarks/results`, `python -m benchmarks.report` makes `docs/performance.md`.
"""
