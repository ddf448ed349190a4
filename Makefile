# Everything a developer does, one target each. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

export ZEROLAYER_CACHE ?= $(HOME)/.cache/zerolayer

export PATH := $(PATH):$(ZEROLAYER_CACHE)/tools/bin

PYTHON ?= python3
UV := uv
RUN := $(UV) run --no-sync
DEV := $(RUN) python -m zerolayer_dev
PYTEST := $(RUN) pytest
# Suites that neither start clusters nor measure: a process per core, and torch has no second core to itself.
PYTEST_PARALLEL := OMP_NUM_THREADS=1 $(PYTEST) --numprocesses=auto --dist=loadfile
# Tests against an API server mostly wait; each of two processes has one of its own.
PYTEST_PAIR := $(PYTEST) --numprocesses=2 --dist=loadfile

# The worker and the engines it is measured beside, apart from what developers and CI install.
PEERS_ENV := $(ZEROLAYER_CACHE)/peers-env

# Arguments of single targets: make cluster-up NAME=x SIZE=node, make kubectl ARGS='get zlp'.
NAME ?=
SIZE ?= node
ARGS ?=
TO ?= dist
cluster_name = $(or $(NAME),dev)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' -v on="$$([ ! -t 1 ] || printf '\033[1m')" -v off="$$([ ! -t 1 ] || printf '\033[0m')" \
		'/^[a-z0-9-]+:.*## / {printf "  %s%-17s%s %s\n", on, $$1, off, $$2}' $(MAKEFILE_LIST)

# --- See it work

.PHONY: demo
demo: prerequisites ## Show a pool's whole life on a Kubernetes of its own: install, answers, growth, shrinking
	@$(DEV) demo up

.PHONY: demo-update
demo-update: prerequisites ## Show two updates of a pool there: a canary that is promoted, and one that is rolled back
	@$(DEV) demo update

.PHONY: demo-down
demo-down: ## Remove the demo: no process, mount, interface or namespace stays
	@$(DEV) demo down

# --- Tests

.PHONY: test
test: setup prerequisites generate-check lint binaries images models ## Everything but what is marked long
	@failed=; $(PYTEST_PARALLEL) -m "not long" tests/unit tests/chart $(ARGS) || failed=yes; \
	$(PYTEST) -m "not long" tests/model tests/gpu $(ARGS) || failed=yes; \
	$(PYTEST_PAIR) -m "not long" tests/integration $(ARGS) || failed=yes; \
	$(PYTEST) -m "not long" tests/e2e $(ARGS) || failed=yes; [ -z "$$failed" ]

.PHONY: test-unit
test-unit: setup ## Functions and classes, without a cluster or a model
	@$(PYTEST_PARALLEL) -m "not long" tests/unit $(ARGS)

.PHONY: test-chart
test-chart: setup ## The Helm chart, rendered
	@$(PYTEST_PARALLEL) -m "not long" tests/chart $(ARGS)

.PHONY: test-model
test-model: setup models ## The worker with real weights
	@$(PYTEST) -m "not long" tests/model $(ARGS)

.PHONY: test-integration
test-integration: setup prerequisites binaries ## The operator against a real API server
	@$(PYTEST_PAIR) -m "not long" tests/integration $(ARGS)

.PHONY: test-e2e
test-e2e: setup prerequisites binaries images ## Real pods on a real node
	@$(PYTEST) -m "not long" tests/e2e $(ARGS)

.PHONY: test-gpu
test-gpu: setup models ## On a machine with a GPU: the worker's tests there, then benchmarks into OUT (out/gpu); docs/gpu.md
	@$(RUN) python -c 'import torch, sys; torch.cuda.is_available() or sys.exit("torch sees no GPU here; make test-unit interprets the kernels on the CPU")'
	@$(PYTEST) tests/unit/worker/sampling/test_triton.py tests/unit/worker/models/test_paged_attention.py tests/gpu $(ARGS)
	@$(RUN) python -m zerolayer_bench.sampling --device cuda --out "$(or $(OUT),out/gpu)"
	@$(RUN) python -m zerolayer_bench.decode --out "$(or $(OUT),out/gpu)"

.PHONY: test-long
test-long: setup prerequisites binaries images models ## What does not fit into `make test`; figures go to docs/promises.md
	@$(PYTEST) -m long tests $(ARGS)
	@$(DEV) generate

.PHONY: fuzz
fuzz: setup ## Look for new examples that break a property: thousands for each, other ones each time
	@$(PYTEST) -m "hypothesis and not long" --hypothesis-profile=explore tests/unit tests/chart $(ARGS)

.PHONY: promise
promise: setup ## Run one promise and print its figures: make promise NAME=demo (without NAME: list them)
	@$(if $(NAME),$(PYTEST) tests --promise "$(NAME)" $(ARGS),sed -n 's/^| \*\*\([a-z-]*\)\*\*.*/\1/p' docs/promises.md)

.PHONY: bench
bench: setup prerequisites binaries images models ## Measure sizes and speeds
	@$(PYTEST) tests --promise sizes --promise no-logits $(ARGS)

.PHONY: bench-autoscaling
bench-autoscaling: setup ## Replay recorded arrivals under many policies: make bench-autoscaling TRACES=DIR OUT=DIR
	@$(if $(and $(TRACES),$(OUT)),,echo "say what to replay and where to write: make bench-autoscaling TRACES=DIR OUT=DIR" >&2; exit 2)
	@$(RUN) python -m zerolayer_bench.autoscaling --traces "$(TRACES)" --out "$(OUT)"

.PHONY: bench-verdict
bench-verdict: setup ## Simulate canaries, harmful and not, and how many are rolled back: make bench-verdict OUT=DIR
	@$(if $(OUT),,echo "say where to write: make bench-verdict OUT=DIR" >&2; exit 2)
	@$(RUN) python -m zerolayer_bench.verdict --out "$(OUT)"

.PHONY: bench-worker
bench-worker: setup ## Measure the worker beside transformers, llama.cpp and OpenVINO: make bench-worker OUT=DIR
	@$(if $(OUT),,echo "say where to write: make bench-worker OUT=DIR" >&2; exit 2)
	@UV_PROJECT_ENVIRONMENT="$(PEERS_ENV)" $(UV) sync --frozen --quiet --no-default-groups --group peers
	@"$(PEERS_ENV)/bin/python" -m zerolayer_bench.worker --out "$(OUT)" $(ARGS)

.PHONY: bench-sampling
bench-sampling: setup ## Time the sampling step against sorted and top-k logits: make bench-sampling OUT=DIR ARGS='--device cuda'
	@$(if $(OUT),,echo "say where to write: make bench-sampling OUT=DIR" >&2; exit 2)
	@$(RUN) python -m zerolayer_bench.sampling --out "$(OUT)" $(ARGS)

.PHONY: bench-claims
bench-claims: setup models ## Measure the figures the idea was introduced with: make bench-claims OUT=DIR ARGS='--only memory'
	@$(if $(OUT),,echo "say where to write, or go on from: make bench-claims OUT=DIR" >&2; exit 2)
	@$(RUN) python -m zerolayer_bench.claims --out "$(OUT)" $(ARGS)

.PHONY: lint
lint: setup ## Formatting, ruff, pyright, import contracts
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) pyright
	@$(RUN) lint-imports

.PHONY: fmt
fmt: setup ## Format and mend what ruff can mend
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix .

.PHONY: pre-commit
pre-commit: setup ## Run every pre-commit hook over the whole tree
	@$(RUN) pre-commit run --all-files

# --- Build

.PHONY: setup
setup: ## Get uv where it is missing and install the locked Python environment
	@command -v $(UV) >/dev/null || { \
		echo "installing uv into $(ZEROLAYER_CACHE)/tools"; \
		$(PYTHON) -m venv "$(ZEROLAYER_CACHE)/tools"; \
		"$(ZEROLAYER_CACHE)/tools/bin/pip" install --quiet --disable-pip-version-check uv; }
	@$(UV) sync --frozen --quiet --group dev --group model --group bench

.PHONY: prerequisites
prerequisites: setup ## Install what this machine lacks (as root, by apt-get), or name the command that does
	@$(DEV) prerequisites --install

.PHONY: binaries
binaries: prerequisites ## Build Kubernetes' programs
	@$(DEV) cluster build

.PHONY: images
images: prerequisites ## Build the container images
	@$(DEV) images build --all

.PHONY: models
models: setup ## Make the demo's model folder
	@$(DEV) models

.PHONY: plugin
plugin: setup ## Write `kubectl zerolayer` as one file: make plugin TO=~/.local/bin
	@$(DEV) plugin --to "$(TO)"

.PHONY: generate
generate: setup ## Write CRD, promises page and the other generated files
	@$(DEV) generate

.PHONY: generate-check
generate-check: setup ## Fail where a generated file is stale
	@$(DEV) generate --check

# --- A cluster to play with

.PHONY: cluster-up
cluster-up: prerequisites ## Start a local Kubernetes: make cluster-up NAME=dev SIZE=node|control-plane
	@$(DEV) cluster up --name $(cluster_name) --size $(SIZE)

.PHONY: cluster-down
cluster-down: setup ## Stop it and leave nothing behind
	@$(DEV) cluster down --name $(cluster_name)

.PHONY: kubectl
kubectl: setup ## Talk to it: make kubectl ARGS='get zlp -A'
	@$(DEV) cluster kubectl --name $(cluster_name) -- $(ARGS)

.PHONY: clean
clean: ## Remove what tests and tools left in the checkout (the cache stays)
	@rm -rf out dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
