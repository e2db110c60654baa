# Everything sets itself up: python3 (>= 3.11) with venv is all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The tests start hundreds of processes: without bytecode each of them compiles all modules, half a second of CPU time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help check test demo bench format clean

help:  ## these lines
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml src/lastcall_lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "lastcall needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=...")'
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed: on Debian the package python3-venv is missing"; exit 1; }
	@echo "setting up $(VENV) ..."; $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[dev]' --editable src/lastcall_lab
	@$(BIN)/python -m compileall -q src
	@touch $@

check: $(STAMP)  ## all static checks: lint, format, types, layers, pages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --no-logo --config pyproject.toml
	@$(BIN)/python -m lastcall.names --check docs/reference/names.md
	@$(BIN)/python -m pytest -q --no-header tests/core/test_docs.py
	@$(BIN)/python tools/helm_chart.py --check
	@$(BIN)/python tools/planted_bugs.py --check

# Most tests wait more than they compute.
WORKERS ?= $(shell n=$$(( 4 * $$(nproc) )); echo $$(( n > 12 ? 12 : n )))

test: $(STAMP)  ## every test that this machine can run; each skip says why
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder $(ARGS)

demo: $(STAMP)  ## three nodes: one shuts down, one loses its power; a database is drained (no root, two minutes)
	@$(BIN)/lastcall demo

bench: $(STAMP)  ## measures; prints each target as met or missed
	@$(BIN)/python bench/run.py $(ARGS)

format: $(STAMP)  ## formats the code
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix --quiet .

clean:  ## removes what make made
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis src/*.egg-info
