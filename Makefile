# Everything starts here: `make run` shows the product at work, `make test` proves it. Both set up what they need.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
LOCK := requirements/dev.lock

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format types layers docs bench soak lock clean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)

$(STAMP): $(LOCK) pyproject.toml
	@echo "» setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Troth needs Python 3.11 or newer; `make PYTHON=python3.12 …` names another one")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(LOCK)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

lock: ## pin the development tools anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-annotate --group dev --all-extras pyproject.toml -o $(LOCK)

lint: setup ## ruff, mypy --strict, layers
	@echo "» ruff"; $(BIN)/ruff check . && $(BIN)/ruff format --check .
	@echo "» mypy --strict"; $(BIN)/mypy
	@echo "» layers"; $(BIN)/lint-imports

format: setup ## ruff format and its safe fixes
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

test: lint ## everything that has to hold
	@echo "» tests"; $(BIN)/python -m pytest -n auto --dist loadgroup

clean: ## forget the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache docs/_build dist
