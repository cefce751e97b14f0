"""Errors and warnings for unusual numbers.

A number that cannot be used is an error. One that can be, but is rarely intended, is a
warning, which these tests turn into an error.
"""

import steepest

ODD = (ValueError, steepest.UnusualValueWarning)
