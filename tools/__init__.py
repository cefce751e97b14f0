"""Commands for maintainers. `make` runs them; the wheel does not contain them."""
