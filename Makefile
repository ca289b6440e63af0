# `make demo` and `make test` each work as the first command in a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One thread a process: the networks are small, and tests run two processes side by side.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.PHONY: demo quick test lint docs clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

demo: $(READY)
	@rm -rf runs/demo
	$(BIN)/abi fit --simulator simulators:TwoMoons --num-simulations 5000 --seed 0 --out runs/demo

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file examples/mypy.ini examples
	$(BIN)/lint-imports

FIRST := tests/project/test_architecture.py tests/simulators/test_tasks.py tests/simulators/files \
	tests/abi/quantiles/test_distance.py tests/abi/rounds/test_rejection.py tests/abi/generators/test_compiled.py \
	tests/validation/posteriors tests/validation/methods/test_ranks.py tests/validation/test_bad_input.py

# The first circle: style, types, import rules, and the contracts that everything else rests on.
quick: lint
	$(BIN)/python -m pytest -n 2 $(FIRST)

test: lint
	$(BIN)/python -m pytest -n 2

# Executes the notebooks; any warning fails the build, and so does a link that leads nowhere.
docs: $(READY)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) runs build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
