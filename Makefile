# Everything is set up by itself in .venv, given only python3, pip and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: test check docs format lint types neighbours bench race chromium clean

test: .venv/tests chromium  ## the tests
	$(BIN)/python -m pytest -n 2 -q

check: .venv/tests .venv/dev  ## format, lint, types, tests, site, as CI runs them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(MAKE) test
	$(MAKE) docs

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/docs  ## the site, in out/docs; every warning is an error
	$(BIN)/sphinx-build -W --keep-going -n -q -E -d out/doctrees docs out/docs

neighbours: .venv/tests .venv/neighbours  ## the libraries that take optimizers take ours
	$(BIN)/python -m pytest -q tests/exchange/test_neighbours.py

bench: .venv/tests  ## the benchmark, as ratios to Optax; kept, and made into a page
	$(BIN)/python -m benchmarks --json benchmarks/results/cpu.json
	$(BIN)/python -m benchmarks.report

race: .venv/race  ## which optimizer, at which learning rate, with a report
	$(BIN)/steepest race

.PHONY: changelog release matrix typing
changelog:  ## CHANGELOG.md, from the fragments in changes/
	$(PYTHON) -m tools.changelog

release:  ## build the package, check it, and run it in a clean environment; no upload
	$(PYTHON) -m tools.release

matrix:  ## a part of the tests, with the oldest and newest Python and JAX
	$(PYTHON) -m tools.matrix --keep out/matrix

typing: .venv/typing  ## what mypy and pyright find in a user's script
	$(BIN)/python -m tools.typecheck

# The tests of the report open it in a browser: Debian's, where it can be had.
INSTALL := apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium
chromium:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& DEBIAN_FRONTEND=noninteractive timeout 120 sh -c "$(INSTALL)" >/dev/null 2>&1; } \
	|| echo "There is no Chromium: the tests that open the report in it are skipped."

.venv/%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

clean:
	rm -rf .venv
