# Everything a developer does, in few verbs. Needs Python 3.11 or newer and make; the rest is set up by the first verb that needs it.
PYTHON ?= python3
ENGINE ?= vllm
export ENGINE STRICT KEEP

SET_UP := $(PYTHON) operator/tandem_local/setup/bootstrap.py
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup environment demo test test-faults bench-router bench-choice bench-operator bench-scaling bench-pd lint generate verify docs lock

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## Prepare this machine: environment, Kubernetes, vLLM (ENGINE=simulator: without vLLM)
	@$(SET_UP) tests

demo: ## Serve a real model on a local Kubernetes and take it down (ENGINE=simulator: no vLLM; KEEP=1: leave it up)
	@$(SET_UP) demo
	@$(BIN)/tandem demo

test: setup ## Run the whole suite, tier by tier (STRICT=1: a tier that cannot run fails; TIERS="unit cluster": only these)
	@$(BIN)/python -m tandem_local.setup.run_tests $(TIERS)

test-faults: environment ## Lose workers under a thousand streams, kill the operator 50 times (FAULT_STREAMS=N FAULT_KILLS=N; FAULT_SEED=N repeats a run)
	$(BIN)/python -m pytest -q -rP tests/faults
	FAULT_KILLS=$(or $(FAULT_KILLS),50) $(BIN)/python -m pytest -q -rP tests/apiserver/test_kills.py

bench-router: environment ## Measure the router beside others and write docs/performance/results/ (QUICK=1: short)
	@PYTHONPATH=crds:operator:workers:tests $(BIN)/python -m bench.router $(if $(QUICK),--quick)

bench-choice: environment ## Compare the router's choice of workers with others on recorded loads, in simulated time (QUICK=1: short)
	@PYTHONPATH=crds:operator:workers:tests $(BIN)/python -m bench.choice $(if $(QUICK),--quick)

bench-operator: setup ## Measure the operator over 1,000 services on a real control plane (QUICK=1: 100 services)
	@PYTHONPATH=crds:operator:workers:tests $(BIN)/python -m bench.operator $(if $(QUICK),--quick)

bench-scaling: environment ## Compare autoscaling with others and with an oracle, on recorded loads in simulated time (QUICK=1: short; HOUR=1: fewer seeds)
	@PYTHONPATH=crds:operator:workers:tests $(BIN)/python -m bench.scaling $(if $(QUICK),--quick) $(if $(HOUR),--hour)

bench-pd: setup ## Measure prefill and decode apart beside two aggregated engines, real vLLM on two cores (QUICK=1: short; ENGINE=simulator: no vLLM)
	@PYTHONPATH=crds:operator:workers:tests $(BIN)/python -m bench.pd $(if $(QUICK),--quick)

lint: environment ## Check style, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

generate: environment ## Write what is generated: CRDs, reference, install.yaml, golden files
	$(BIN)/tandem generate
	REWRITE_GOLDEN=1 $(BIN)/python -m pytest -q tests/golden

verify: generate ## Fail if what is generated differs from what is committed
	git diff --exit-code
	@untracked=$$(git ls-files --others --exclude-standard); test -z "$$untracked" || { echo "not committed: $$untracked"; exit 1; }

docs: environment ## Build the documentation into site/
	$(BIN)/mkdocs build --strict

lock: ## Refresh the locked dependencies in requirements/
	@cd operator && $(PYTHON) -m tandem_local.setup.lock

environment:
	@$(SET_UP) environment
