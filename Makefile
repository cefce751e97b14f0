# Everything is set up by itself in .venv, given only python3, pip and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: test check format lint types bench race clean

test: .venv/tests  ## the tests, as CI runs them
	$(BIN)/python -m pytest -n 2 -q

check: .venv/tests .venv/dev  ## format, lint, types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/python -m pytest -n 2 -q

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/tests  ## the benchmark, as ratios to Optax; kept, and made into a page
	$(BIN)/python -m benchmarks --json benchmarks/results/cpu.json
	$(BIN)/python -m benchmarks.report

race: .venv/race  ## which optimizer, at which learning rate
	$(BIN)/python -m examples.race

.venv/%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

clean:
	rm -rf .venv
