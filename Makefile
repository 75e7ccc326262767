SHELL := bash
.SHELLFLAGS := -o pipefail -c

# Everything installs itself into .venv; a fresh machine needs Python 3.11, make and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv pip install --quiet --python $(VENV) --compile-bytecode

# A folder of wheels that pip knows of is looked into first: a CPU build of torch spares gigabytes.
WHEELS := $(firstword $(PIP_FIND_LINKS))

.PHONY: demo test check zoo bench clean

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py

test: $(VENV)/.dev check
	@$(BIN)/pytest -q -n 2 --dist worksteal -m slow

check: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo | tail -n 3
	@$(BIN)/pytest -q -n 2 -m "not slow"

# Every program of examples/torch, killed in eleven ways each.
zoo: $(VENV)/.dev
	@DETRAIN_ZOO_KILLS=11 $(BIN)/pytest -q -n 2 tests/e2e/test_zoo.py

bench: $(VENV)/.dev
	@for each in benchmarks/*.py; do $(BIN)/python $$each; done

clean:
	rm -rf $(VENV) .detrain

$(VENV)/.uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	@touch $@

$(VENV)/.torch: $(VENV)/.uv
	@if [ -n "$(WHEELS)" ]; then \
	  $(UV) --no-index --no-deps --find-links "$(WHEELS)" "torch>=2.4" 2>/dev/null || true; fi
	$(UV) "torch>=2.4"
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.torch
	$(UV) --editable . --group demo
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.demo
	$(UV) --editable . --group dev
	@touch $@
