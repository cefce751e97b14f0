"""steepest against Optax, in one process and one run: `python -m benchmarks`.

Times and bytes are reported as ratios, Optax over steepest: above 1 steepest is ahead.
"""
