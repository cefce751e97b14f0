"""Runs of other packages, stored as numbers, and ours beside them."""
