"""`python -m steepest` is `steepest`."""

from .race.terminal import main

if __name__ == "__main__":
    raise SystemExit(main())
