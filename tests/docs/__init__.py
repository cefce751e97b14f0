"""Tests of the documentation's pictures."""
