# Paperdesk: set-up and checks. Everything is installed into .venv from the lock files, never elsewhere.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help desk paper-demo test test-long mutants check bench docs release-check lock clean

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
UV_VERSION := 0.13.8
JOBS := auto

# What is compiled once is not compiled again by each process, of which tests start thousands.
unexport PYTHONDONTWRITEBYTECODE

help: ## show this
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

desk: $(VENV)/.runtime ## open the app on the demo desk (without a terminal: print the demo backtest)
	@if [ -t 0 ] && [ -t 1 ]; then $(BIN)/paperdesk; else $(BIN)/paperdesk backtest; fi

paper-demo: $(VENV)/.runtime ## play ten sessions of paper trading against a local broker (no account, no key)
	@PAPERDESK_HOME=$$(mktemp -d "$${TMPDIR:-/tmp}/paperdesk-demo.XXXXXX") PAPERDESK_MODELS__DEFAULT=offline \
	  $(BIN)/paperdesk sandbox --sessions 10

test: $(VENV)/.dev ## install what tests need and run them (JOBS=2 for two at a time; default: two more than cores)
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

test-long: $(VENV)/.dev ## run the tests that take minutes (kills, golden results, 10,000 lives of a desk), and properties on all examples
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q -m "slow or hypothesis" --hypothesis-profile=long

mutants: $(VENV)/.dev ## break rules one by one, and name the test that fails for each (MUTANTS="fee-sign veto": these alone)
	@$(BIN)/python -m tests.mutants $(MUTANTS)

check: $(VENV)/.dev ## formatting, lint, types, direction of imports
	@failed=; \
	$(BIN)/ruff format --check . || failed="$$failed format"; \
	$(BIN)/ruff check . || failed="$$failed lint"; \
	$(BIN)/mypy || failed="$$failed types"; \
	$(BIN)/lint-imports || failed="$$failed imports"; \
	if [ -n "$$failed" ]; then echo "make: check failed:$$failed" >&2; exit 1; fi

bench: $(VENV)/.dev ## measure speed
	@$(BIN)/python -m tests.bench

docs: $(VENV)/.dev ## make the site of docs/ in build/docs (a link that leads nowhere fails it)
	@$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -b html docs build/docs

release-check: docs ## build sdist and wheel into dist/ and check them: contents, metadata, installed and run elsewhere
	@rm -rf dist
	@$(BIN)/python -W ignore -c "from setuptools import build_meta as build; build.build_sdist('dist')" >/dev/null
	@$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/paperdesk-*.tar.gz
	@RELEASE_DIST=dist $(BIN)/python -m pytest -q -m "slow or not slow" tests/test_wheel.py tests/test_packaging.py \
	  tests/test_container.py
	@ls -l dist

# The environment: .runtime stamps what the desk needs, .dev what tests need on top of it.

$(VENV)/pyvenv.cfg:
	@found=; lacking=; \
	for python in $(PYTHON) python3.13 python3.12 python3.11 python3 python python3.14; do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
	  if "$$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then found=$$python; break; fi; \
	  lacking=$$python; \
	done; \
	if [ -z "$$found" ] && [ -n "$$lacking" ]; then \
	  echo "make: $$lacking cannot make a virtual environment: install its venv module (Debian: python3-venv) and try again" >&2; exit 1; \
	elif [ -z "$$found" ]; then \
	  echo "make: no Python 3.11 or newer on PATH: install one, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$found"; \
	"$$found" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "make: $$found could not make $(VENV): see above (Debian: install python3-venv)" >&2; exit 1; }

$(VENV)/.runtime: requirements.lock pyproject.toml | $(VENV)/pyvenv.cfg
	@echo "Installing what Paperdesk needs into $(VENV) (once)"
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@PYTHONWARNINGS=ignore $(PIP) install --quiet --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q -j 0 paperdesk tui engine connectors memory
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@echo "Installing what tests and checks need into $(VENV) (once)"
	@$(PIP) install --quiet --require-hashes --no-build-isolation -r requirements-dev.lock
	@touch $@

# The locks. One version of everything for all Pythons and platforms; requirements-dev.lock holds the same runtime.
# `make lock` keeps the pins that still fit; `make lock UPGRADE=--upgrade` takes the newest.

LOCK = .lock-venv/bin/uv --no-config pip compile pyproject.toml --quiet $(UPGRADE) --extra build \
	--universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

lock: $(VENV)/pyvenv.cfg ## write the lock files anew from pyproject.toml (UPGRADE=--upgrade for the newest)
	@[ -x .lock-venv/bin/uv ] || $(BIN)/python -m venv .lock-venv
	@.lock-venv/bin/python -m pip --disable-pip-version-check install --quiet uv==$(UV_VERSION)
	@$(LOCK) --output-file requirements.lock
	@$(LOCK) --extra cluster --extra dev --extra docs --extra images --extra ml --extra serve --extra tune \
	  --constraints requirements.lock --output-file requirements-dev.lock

clean: ## remove the environment, builds and caches
	@rm -rf $(VENV) .lock-venv build dist *.egg-info htmlcov .coverage .cache .hypothesis .import_linter_cache \
	  .mypy_cache .pytest_cache .ruff_cache
	@find paperdesk tui engine connectors memory tests -name __pycache__ -type d -prune -exec rm -rf {} +
