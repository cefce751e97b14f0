"""A user's scripts. `make typing` runs mypy and pyright on them."""
