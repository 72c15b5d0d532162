# Everything is made from here. `make help` lists the targets.
#
# Needs Python 3.11+, Node 18+ and make; all else is installed into .venv and build/.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RULES ?= hit-and-blow
FUZZ_SECONDS ?= 60
# What users need, and what developers need besides.
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
.PHONY: help setup build demo test thorough mutants check fuzz api bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(DEV_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: $(STAMP) ## install the Python package into .venv and the npm packages into build/
	$(BIN)/mastermind tools

build: $(STAMP) ## build circuits and keys (RULES="classic deluxe" for others)
	$(BIN)/mastermind build $(foreach rules,$(RULES),--rules $(rules))

demo: $(STAMP) ## play and verify one game with real proofs
	$(BIN)/mastermind demo

test: $(DEV_STAMP) ## the whole test suite, real proofs included
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

thorough: $(DEV_STAMP) ## the rest of the tests: more cases of what `make test` shows with a few
	$(BIN)/python -m pytest -m thorough --numprocesses 2 --dist loadfile

mutants: $(DEV_STAMP) ## leave out each constraint of the hit-and-blow circuits in turn (minutes)
	$(BIN)/python -m pytest -m full_size --numprocesses 2

check: $(DEV_STAMP) ## formatting, lints and types; changes no file
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fuzz: $(DEV_STAMP) ## fuzz every parser, guided by coverage (FUZZ_SECONDS=60 for each)
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest --numprocesses 2 tests/fuzz

api: $(DEV_STAMP) ## write the API reference, from the docstrings, to build/api
	$(BIN)/python -m pdoc --output-directory build/api mastermind

bench: $(DEV_STAMP) ## measure proving, verifying and building; table on stdout, JSON in build/bench.json
	$(BIN)/python scripts/bench.py
	$(BIN)/python scripts/bench_referee.py

clean: ## remove what has been built (keeps .venv)
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
