# Every target does its own set-up: Python 3.11 or newer, pip (or uv) and make are enough.
# PYTHON=python3.12 selects the interpreter. The virtual environment is .venv; a change of pyproject.toml updates it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.installed
DEV := $(VENV)/.installed-dev

PYTHON ?=
UV := $(shell command -v uv 2>/dev/null)
GO := $(shell command -v go 2>/dev/null)

ORACLE_DIR := oracle/kube-scheduler
ORACLE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tutti/kube-scheduler-oracle
KARPENTER_DIR := oracle/karpenter
KARPENTER := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tutti/karpenter-oracle

# make fuzz-oracle, fuzz-karpenter: the seeds of random cases. make fuzz-oracle: cases per family and seed.
SEED ?= 1001
CASES ?= 20
# Further arguments for pytest, the benchmark or the fuzzer: make test ARGS="-k quantity".
ARGS ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(RUN) ## Tour the main commands on a packaged example cluster, in under a minute
	@$(BIN)/tutti demo

.PHONY: test
test: $(DEV) ## Run the tests on all cores
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

.PHONY: test-live
test-live: $(DEV) control-plane ## Test on a real control plane: etcd, kube-apiserver, controller manager, kwok
	TUTTI_LIVE_TESTS=1 $(BIN)/pytest --durations=10 tests/controlplane $(ARGS)

.PHONY: control-plane
control-plane: ## Build a control plane into the user's cache, once (needs Go 1.26; 10 to 15 minutes on two cores)
	@tests/controlplane/build

.PHONY: browser
browser: $(DEV) chromium ## Test the report page in Chromium: light and dark, on a desktop and on a phone
	$(BIN)/pytest -rs tests/browser $(ARGS)

# This target never fails: without Chromium the tests in a browser are skipped.
.PHONY: chromium
chromium: ## Install Chromium for the tests in a browser (Debian, as root)
	@if command -v chromium >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium"; \
		timeout 120 apt-get -qq update >/dev/null 2>&1 || true; \
		timeout 600 apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 || true; \
	fi; \
	command -v chromium >/dev/null || echo "Chromium is not installed: the tests in a browser are skipped." >&2

.PHONY: lint
lint: $(DEV) ## Check style, formatting, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports

.PHONY: format
format: $(DEV) ## Format the code and apply the fixes of ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: bench
bench: $(RUN) $(if $(GO),$(ORACLE) $(KARPENTER)) ## Run the benchmarks, with kube-scheduler and Karpenter if Go is installed
	@$(if $(GO),true,echo "Go is not installed: no comparison with kube-scheduler ($(ORACLE_DIR)) and Karpenter ($(KARPENTER_DIR)).")
	$(BIN)/python benchmarks/ladder.py $(if $(GO),--oracle $(ORACLE)) $(ARGS)
	$(BIN)/python benchmarks/bars.py $(if $(GO),--oracle $(ORACLE))
	$(BIN)/python benchmarks/gangs.py
	$(BIN)/python benchmarks/gang_brute_force.py
	$(BIN)/python benchmarks/sessions.py
	$(BIN)/python benchmarks/counted_work.py
	$(BIN)/python benchmarks/purchases.py $(if $(GO),--oracle $(KARPENTER))
	$(BIN)/python benchmarks/replay.py

.PHONY: fuzz-oracle
fuzz-oracle: $(RUN) $(ORACLE) ## Compare with kube-scheduler on fresh cases (SEED="1 2", CASES=20; needs Go)
	$(BIN)/python oracle/fuzz.py --oracle $(ORACLE) --cases $(CASES) $(ARGS) $(SEED)

.PHONY: fuzz-karpenter
fuzz-karpenter: $(RUN) $(KARPENTER) ## Compare purchases with Karpenter's on fresh instances (SEED="1 2"; needs Go)
	$(BIN)/python oracle/fuzz_karpenter.py --oracle $(KARPENTER) $(ARGS) $(SEED)

# Defaults: two replicas of tutti, 1,000 faults, 100 kills, 20 changes of leader; about half an hour.
# make soak ARGS="--peer" runs kube-scheduler's native gangs instead; ARGS="--help" lists all options.
.PHONY: soak
soak: $(DEV) control-plane ## Test the scheduler under faults, kill -9 and changes of leader on a real control plane
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.controlplane.faults.soak $(ARGS)

.PHONY: clean
clean: ## Remove .venv, caches and build output
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests oracle -name __pycache__ -type d -prune -exec rm -rf {} +

# The system's pip installs into the environment, because some Pythons have no ensurepip.
define install
@if [ -n "$(UV)" ]; then \
	[ -x $(BIN)/python ] || "$(UV)" venv --quiet --clear --python "$(or $(PYTHON),>=3.11)" $(VENV); \
	"$(UV)" pip install --quiet --python $(BIN)/python --editable '$(1)'; \
else \
	for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break || python=; \
	done; \
	[ -n "$$python" ] || { echo "Python 3.11 or newer was not found: set PYTHON=..." >&2; exit 1; }; \
	[ -x $(BIN)/python ] || "$$python" -m venv --clear --without-pip $(VENV); \
	"$$python" -m pip --disable-pip-version-check --python $(BIN)/python install --quiet --editable '$(1)'; \
fi
@touch $@
endef

$(RUN): pyproject.toml
	@echo "Setting up $(VENV) (once)"
	$(call install,.)

$(DEV): $(RUN)
	@echo "Adding the development tools to $(VENV) (once)"
	$(call install,.[dev])

$(ORACLE): $(wildcard $(ORACLE_DIR)/*.go) $(ORACLE_DIR)/go.mod $(ORACLE_DIR)/go.sum
	@[ -n "$(GO)" ] || { echo "Go 1.26 or newer is needed to build $(ORACLE_DIR)." >&2; exit 1; }
	@echo "Building kube-scheduler's own plugins (some minutes the first time)"
	@mkdir -p $(@D)
	cd $(ORACLE_DIR) && $(GO) build -trimpath -buildvcs=false -o $@ .

$(KARPENTER): $(wildcard $(KARPENTER_DIR)/*.go) $(KARPENTER_DIR)/go.mod $(KARPENTER_DIR)/go.sum
	@[ -n "$(GO)" ] || { echo "Go 1.26 or newer is needed to build $(KARPENTER_DIR)." >&2; exit 1; }
	@echo "Building Karpenter's own scheduler (some minutes the first time)"
	@mkdir -p $(@D)
	cd $(KARPENTER_DIR) && $(GO) build -trimpath -buildvcs=false -o $@ .
