# Everything starts here: `make run` shows the product at work, `make test` proves it. Both set up what they need.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCK := requirements/dev.lock
BENCH_LOCK := requirements/bench.lock
# Compiled, as the wheels are that users get, unless `make develop` was called: then the sources as they are edited.
COMPILE ?= $(if $(wildcard $(VENV)/.editable),0,1)
SOURCES := $(if $(filter-out 0,$(COMPILE)),hatch_build.py $(shell find src -name '*.py') $(if $(wildcard $(VENV)/.editable),force))

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format docs develop bench soak lock clean force

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Troth needs Python 3.11 or newer; `make PYTHON=python3.12 …` names another one")'
	@echo "» making an environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The package alone, as a user has it: enough for `make run`.
$(VENV)/.package: pyproject.toml $(SOURCES) | $(BIN)/python
ifeq ($(COMPILE),0)
	@echo "» installing Troth into $(VENV), as it is edited"
	@$(PIP) --editable '.[runtime]'
	@touch $(VENV)/.editable
else
	@rm -f $(VENV)/.editable
	@echo "» installing Troth into $(VENV), compiled (two minutes; \`make develop\` does without)"
	@TROTH_COMPILE=$(COMPILE) $(PIP) '.[runtime]'
	@$(BIN)/python -m troth.analysis.compiled
endif
	@touch $@

# What the tests and the linters need, pinned.
$(VENV)/.ready: $(LOCK) $(VENV)/.package
	@echo "» installing the pinned development tools (once; a minute or two)"
	@$(PIP) -r $(LOCK)
	@touch $@

setup: $(VENV)/.ready

run: $(VENV)/.package ## see it work: findings, repair and a workflow on the example service
	@$(BIN)/python examples/tour.py

test: lint ## everything that has to hold
	@echo "» tests"
	@$(BIN)/python -m pytest -n auto --dist loadgroup

lint: setup ## ruff, mypy --strict, layers, our own check
	@echo "» ruff"
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@echo "» mypy --strict"
	@$(BIN)/mypy
	@echo "» layers"
	@$(BIN)/lint-imports | tail -n 4
	@echo "» troth check"
	@$(BIN)/troth check src tests bench tools examples/*.py examples/workflow

develop: ## from now on run the sources as they are edited, instead of compiling them
	@rm -f $(VENV)/.package
	@$(MAKE) --no-print-directory setup COMPILE=0

format: setup ## let ruff write the code its way
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

docs: setup ## build the documentation into docs/_build/html
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "» docs/_build/html/index.html"

bench: setup ## measure, beside peers where they can be installed
	@echo "» installing the peers"; $(PIP) -r $(BENCH_LOCK)
	@for part in $$(cd bench && ls -d */ | tr -d /); do echo; echo "» bench/$$part"; $(BIN)/python -m bench.$$part || exit 1; done

soak: setup ## the long proofs: fuzzing, load, crash matrix
	@$(BIN)/python -m pytest -n auto --dist loadgroup -m soak --timeout 1800

lock: ## pin the development tools anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-annotate --group dev --all-extras pyproject.toml -o $(LOCK)
	uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-annotate --group bench -c $(LOCK) pyproject.toml -o $(BENCH_LOCK)

clean: ## forget the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .troth_cache docs/_build dist
