"""What is raised for a number that is hardly ever meant.

Where it cannot be computed with, an error; where it can, a warning, which is an error
in these tests.
"""

import steepest

ODD = (ValueError, steepest.UnusualValueWarning)
