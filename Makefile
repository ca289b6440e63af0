# `make demo` and `make test` each work as the first command in a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One thread a process: the networks are small, and tests run two processes side by side.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

PINS := --constraint constraints.txt
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)

# Two processes with half of the tests each, in order, so that a fixture of a room is made once; who
# is done early takes half of what the other has left.
TWO := -n 2 --dist worksteal

.PHONY: demo quick test check lint docs dist smoke test-oldest test-newest constraints clean clean-loops

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(PINS) torch
	$(BIN)/python -m pip install --quiet $(PINS) --editable ".[dev]"
	touch $(READY)

demo: $(READY)
	@rm -rf runs/demo
	$(BIN)/abi fit --simulator simulators:TwoMoons --num-simulations 10000 --seed 0 --out runs/demo

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
	$(BIN)/python -m pytest $(TWO) $(FIRST)

test: lint check

# The tests alone; the arguments of pytest come as TESTS="-x tests/abi".
check: $(READY)
	$(BIN)/python -m pytest $(TWO) $(TESTS)

# The lowest version of every dependency that pyproject.toml allows. Old releases call what newer ones
# below them deprecate: that is no failure here.
OLDEST := .venv-oldest
test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/python -m pytest $(TWO) -W ignore::DeprecationWarning -W ignore::FutureWarning $(TESTS)

$(OLDEST)/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	$(OLDEST)/bin/uv pip install --python $(OLDEST) --resolution lowest-direct --editable ".[dev]"
	touch $@

# The newest version of every dependency that there is today.
test-newest:
	$(MAKE) check VENV=.venv-newest PINS=

# Executes the notebooks; any warning fails the build, and so does a link that leads nowhere.
docs: $(READY)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

# The wheel that the sdist makes, in a fresh environment outside the checkout, as a user has it.
smoke: dist
	SMOKE=$$(mktemp -d) && trap 'rm -rf "$$SMOKE"' EXIT && \
	$(PYTHON) -m venv $$SMOKE/env && cp tests/smoke.py constraints.txt dist/*.whl $$SMOKE && cd $$SMOKE && \
	env/bin/python -m pip install --quiet $(PINS) $$(echo *.whl)"[plots]" && \
	env/bin/python smoke.py

# Resolves a development install anew. What is pinned stays; PINS= takes the newest of all but torch.
constraints: FRESH := build/pins
constraints:
	$(PYTHON) -m venv --clear $(FRESH)
	$(FRESH)/bin/python -m pip install --quiet --upgrade pip
	$(FRESH)/bin/python -m pip install --quiet $(PINS) torch==$(TORCH)
	$(FRESH)/bin/python -m pip install --quiet $(PINS) torch==$(TORCH) --editable ".[dev]"
	$(FRESH)/bin/python -m pip freeze --exclude-editable > $(FRESH)/all.txt
	echo '# Every dependency of a development install, pinned by `make constraints`:' \
		'pip install -c constraints.txt -e ".[dev]"' > constraints.txt
	sed 's/+[a-z0-9.]*$$//' $(FRESH)/all.txt >> constraints.txt  # any build of that version
	rm -rf $(FRESH)

clean-loops:
	find abi simulators -name '*.nb[ic]' -delete

clean: clean-loops
	rm -rf $(VENV) .venv-* runs build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
