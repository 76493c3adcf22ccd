# Everything starts here: `make run` shows the product at work, `make test` proves it. Both set up what they need.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCK := requirements/dev.lock
BENCH_LOCK := requirements/bench.lock
# How Troth is installed into $(VENV). Each recipe leaves a stamp that says so, and removes those that are no longer true.
#   editable   the sources as they are edited: from `make develop` on, until somebody asks for `COMPILE=1`
#   compiled   as the wheels that users get: what is proven and measured (`make test`, `make bench`, `make soak`)
#   installed  compiled or plain Python, whichever is there: enough for `make run` and all the rest, and made in seconds
COMPILE ?= $(if $(wildcard $(VENV)/.editable),0,$(if $(filter test bench soak,$(MAKECMDGOALS)),1,0))
INSTALL ?= $(if $(filter-out 0,$(COMPILE)),compiled,$(if $(wildcard $(VENV)/.editable),editable,installed))
SOURCES := pyproject.toml hatch_build.py $(shell find src -type f -not -path '*/__pycache__/*')

comma := ,

.DEFAULT_GOAL := help
.PHONY: help setup run test lint same format docs develop bench soak lock clean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Troth needs Python 3.11 or newer; `make PYTHON=python3.12 …` names another one")'
	@echo "» making an environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The package alone, as a user has it.
$(VENV)/.installed: $(SOURCES) | $(BIN)/python
	@echo "» installing Troth into $(VENV)"
	@rm -f $(VENV)/.compiled $(VENV)/.editable
	@$(PIP) '.[runtime,lsp,server]'
	@touch $@

$(VENV)/.compiled: $(SOURCES) | $(BIN)/python
	@echo "» installing Troth into $(VENV), compiled (two minutes; \`make develop\` does without)"
	@rm -f $(VENV)/.installed $(VENV)/.editable
	@TROTH_COMPILE=$(COMPILE) $(PIP) '.[runtime,lsp,server]'
	@$(BIN)/python -m troth.analysis.compiled
	@touch $(VENV)/.installed $@

$(VENV)/.editable: pyproject.toml | $(BIN)/python
	@echo "» installing Troth into $(VENV), as it is edited"
	@rm -f $(VENV)/.installed $(VENV)/.compiled
	@$(PIP) --editable '.[runtime,lsp,server]'
	@touch $@

# What the tests and the linters need, pinned.
$(VENV)/.ready: $(LOCK) | $(VENV)/.$(INSTALL)
	@echo "» installing the pinned development tools (once; a minute or two)"
	@$(PIP) -r $(LOCK)
	@touch $@

setup: $(VENV)/.$(INSTALL) $(VENV)/.ready

run: $(VENV)/.$(INSTALL) ## see it work: findings, repair and a workflow on the example service
	@$(BIN)/python examples/tour.py

# Debian's packages; where its list of them is missing or old, that is fetched first.
install_debian = apt-get install -y -qq $(1) >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq $(1); } >/dev/null 2>&1

# Two real editors for tests/lsp, where they can be had without asking; elsewhere those tests are skipped, and say so.
EDITORS := $(VENV)/.editors
$(EDITORS): | $(BIN)/python
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { command -v nvim && command -v emacs; } >/dev/null; then \
		echo "» installing neovim and emacs for the tests of the language server"; \
		$(call install_debian,neovim emacs-nox elpa-eglot) || echo "  not to be had here: their tests are skipped"; \
	fi
	@touch $@

# VS Code for the long proofs of tests/lsp, with what our extension needs, where npm is; elsewhere that test is skipped.
CODE_SERVER := build/code-server
$(CODE_SERVER)/.complete: editors/vscode/package.json
	@if command -v npm >/dev/null && command -v chromium >/dev/null; then \
		echo "» installing VS Code (code-server) for the long proofs of the language server"; \
		mkdir -p $(CODE_SERVER)/extension && cp editors/vscode/package.json $(CODE_SERVER)/extension/ && \
		npm install --silent --no-audit --no-fund --ignore-scripts --omit=dev --prefix $(CODE_SERVER)/extension && \
		npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(CODE_SERVER) code-server@4.100.3 && \
		npm run --silent --prefix $(CODE_SERVER)/node_modules/argon2 install && \
		cd $(CODE_SERVER)/node_modules/code-server/lib/vscode && \
		npm install --silent --no-audit --no-fund --ignore-scripts --omit=dev && \
		npm rebuild --silent @vscode/spdlog native-watchdog || echo "  not to be had here: its test is skipped"; \
	fi
	@mkdir -p $(CODE_SERVER) && touch $@

# A PostgreSQL server for the tests of the store that several machines share; elsewhere those tests are skipped, and say so.
POSTGRES := $(VENV)/.postgres
$(POSTGRES): | $(BIN)/python
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		! { { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } && command -v pgbouncer; } >/dev/null 2>&1; then \
		echo "» installing PostgreSQL and PgBouncer for the tests of the store"; \
		$(call install_debian,postgresql pgbouncer) || echo "  not to be had here: its tests are skipped"; \
	fi
	@touch $@

# A real browser for the tests of the pages; elsewhere those tests are skipped, and say so.
BROWSER := $(VENV)/.browser
$(BROWSER): | $(BIN)/python
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v chromium >/dev/null; then \
		echo "» installing chromium for the tests of the pages"; \
		$(call install_debian,chromium) || echo "  not to be had here: no page is looked at in a browser"; \
	fi
	@touch $@

# In parts, so that no process holds all tests and all that they leave in memory. A worker that dies is not replaced:
# `loadgroup` never ends where the new one finds no test left.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup --max-worker-restart 0
OF_THE_ANALYSIS := tests/analysis
AT_RUN_TIME := tests/bridge tests/guard tests/runtime
OF_TEMPORAL := tests/runtime/engine/temporal
OF_THE_SERVER := tests/server tests/testing
OF_THE_PAGES := tests/server/pages
ON_POSTGRES := $(PYTEST) -p tests.on_postgres.plugin
SHORT_ON_POSTGRES := $(addprefix tests/runtime/,engine/test_conformance.py sagas/test_verbs.py sagas/test_undo.py \
	workflows/test_running.py conversations/test_follow.py sessions/test_acting.py promises/test_promises.py)
ON_TEMPORAL := $(PYTEST) -p tests.on_temporal.plugin
LONG_ON_TEMPORAL := $(addprefix tests/runtime/,sagas/test_verbs.py sagas/test_undo.py workflows/test_running.py)
LONG_ON_POSTGRES := $(addprefix tests/runtime/,engine sagas workflows conversations sessions promises jobs) \
	tests/server/test_access.py tests/server/test_repetition.py tests/server/telemetry

# A part of the suite. What fails is tried once more, alone: a test that passes then depends on what ran beside it, which is a
# defect too, so both runs stay in the log. `make test STRICT=1` does without the second try.
prove = echo "» $(1)"; $(2) || { [ $$? = 1 ] && [ -z "$(STRICT)" ] && echo "» failed beside other tests; again, alone:" && \
	$(2) -n 0 --last-failed --last-failed-no-failures none; } || failed=1

test: lint $(EDITORS) $(POSTGRES) $(BROWSER) ## everything that has to hold
	@failed=0; \
	$(call prove,tests of the analysis,$(PYTEST) $(OF_THE_ANALYSIS)); \
	$(call prove,tests of the command line$(comma) the language server and the repository,\
		$(PYTEST) tests $(addprefix --ignore ,$(OF_THE_ANALYSIS) $(AT_RUN_TIME) $(OF_THE_SERVER))); \
	$(call prove,tests of the boundary and the runtime,$(PYTEST) $(AT_RUN_TIME) --ignore $(OF_TEMPORAL)); \
	$(call prove,tests of the runtime on Temporal,$(PYTEST) $(OF_TEMPORAL)); \
	$(call prove,tests of the server,$(PYTEST) $(OF_THE_SERVER) --ignore $(OF_THE_PAGES)); \
	$(call prove,tests of the pages$(comma) in a browser,$(PYTEST) $(OF_THE_PAGES)); \
	$(call prove,tests of the runtime again$(comma) on PostgreSQL,$(ON_POSTGRES) $(SHORT_ON_POSTGRES)); \
	exit $$failed

lint: setup ## ruff, mypy --strict, layers, our own check
	@echo "» ruff"
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@echo "» mypy --strict"
	@$(BIN)/mypy
	@echo "» layers"
	@$(BIN)/lint-imports | tail -n 4
	@echo "» troth check"
	@$(BIN)/troth check src tests bench tools examples/*.py examples/workflow

# The answers of the sources as they are edited, whatever is installed; of compiled code too with COMPILED=1, and of real
# projects too with TREES=folder (see tools/same).
SAME := tools.same compare
SAME_COMPILED := build/same/compiled
same: setup $(if $(COMPILED),$(SAME_COMPILED)/.complete) ## every finding as in the golden record (COMPILED=1, TREES=folder: more of them)
	@PYTHONPATH=src $(BIN)/python -m $(SAME) --flavor plain
	@$(if $(TREES),PYTHONPATH=src $(BIN)/python -m $(SAME) --flavor plain --trees $(TREES))
	@$(if $(COMPILED),PYTHONPATH=$(SAME_COMPILED) $(BIN)/python -m $(SAME) --flavor compiled)
	@$(if $(and $(COMPILED),$(TREES)),PYTHONPATH=$(SAME_COMPILED) $(BIN)/python -m $(SAME) --flavor compiled --trees $(TREES))

# Folders stand among what it is made of because a file that is moved keeps its time.
$(SAME_COMPILED)/.complete: hatch_build.py $(shell find src -not -path '*__pycache__*') | setup
	@echo "» compiling (two minutes)"
	@rm -rf $(SAME_COMPILED) && mkdir -p $(SAME_COMPILED)
	@$(BIN)/python hatch_build.py $(SAME_COMPILED) > build/same/compiling.log 2>&1 || { tail -n 30 build/same/compiling.log; exit 1; }
	@touch $@

develop: ## from now on run the sources as they are edited, instead of installing them
	@$(MAKE) --no-print-directory setup COMPILE=0 INSTALL=editable

format: setup ## let ruff write the code its way
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

docs: setup ## build the documentation into docs/_build/html
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "» docs/_build/html/index.html"

bench: setup ## measure, beside peers where they can be installed
	@echo "» installing the peers"; $(PIP) -r $(BENCH_LOCK)
	@for part in $$(cd bench && ls -d */ | tr -d /); do echo; echo "» bench/$$part"; $(BIN)/python -m bench.$$part || exit 1; done

soak: setup $(POSTGRES) $(CODE_SERVER)/.complete ## the long proofs: fuzzing, load, crash matrix
	@$(PYTEST) -m soak --timeout 1800; first=$$?; \
	echo "» the suites of the runtime, on PostgreSQL"; \
	$(ON_POSTGRES) $(LONG_ON_POSTGRES); second=$$?; \
	echo "» sagas and workflows, on Temporal"; \
	$(ON_TEMPORAL) $(LONG_ON_TEMPORAL) && [ $$second = 0 ] && exit $$first

lock: ## pin the development tools anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-annotate --group dev --all-extras pyproject.toml -o $(LOCK)
	uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-annotate --group bench -c $(LOCK) pyproject.toml -o $(BENCH_LOCK)

clean: ## forget the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .troth_cache docs/_build dist
