# The developer's loop. `make demo` and `make test` set everything up by themselves on a fresh machine.
.POSIX:
.DEFAULT_GOAL := help
.PHONY: help setup setup-tests demo test test-all test-real unit rigs fuzz mutants molecule lint format bench sizes check-pages lock clean

BIN := .venv/bin
# Simulated rigs are containers with a systemd of their own: that takes root. What says where packages come from goes along.
KEEP := RIGCTL_INVENTORY,RIGCTL_RUNS,http_proxy,https_proxy,no_proxy,PIP_INDEX_URL,PIP_EXTRA_INDEX_URL,PIP_FIND_LINKS,PIP_CERT,SSL_CERT_FILE
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo --preserve-env=$(KEEP))
# What continuous integration has time for; `make test-all` runs all of them.
SCENARIOS := default
ALL_SCENARIOS := $(patsubst molecule/%/molecule.yml,%,$(wildcard molecule/*/molecule.yml))

help:  ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

setup:  ## system packages and .venv (every target below calls it; instant when there is nothing to do)
	@tools/setup.sh

demo: setup  ## two simulated rigs: provisioned, accepted, reported, taken down (DEMO='--fault pump_dead' and so on)
	@$(AS_ROOT) $(BIN)/rigctl demo $(DEMO)

setup-tests:
	@tools/setup.sh tests

test: setup-tests  ## unit tests, tests on simulated rigs without the slow ones, molecule (at most 30 minutes)
	$(AS_ROOT) $(BIN)/python -m pytest -m 'not slow' --durations=15
	@$(MAKE) --no-print-directory molecule

test-all: setup-tests  ## the slow tests on simulated rigs and all scenarios of molecule too
	$(AS_ROOT) $(BIN)/python -m pytest -m 'not real' --durations=30
	@$(MAKE) --no-print-directory molecule SCENARIOS=all

test-real: setup  ## NVIDIA's own packages of Debian: fetches 2 GB, DKMS and nvcc really compile
	$(AS_ROOT) $(BIN)/python -m pytest -m real --durations=10

unit: setup-tests  ## the tests that need no rigs (seconds)
	$(BIN)/python -m pytest -m 'not rigs'

rigs: setup  ## the tests on simulated rigs alone
	$(AS_ROOT) $(BIN)/python -m pytest -m 'rigs and not slow' --durations=15

fuzz: setup  ## coverage-guided fuzzing of the parsers (NAME=parser, SECONDS=20 for each); installs the extra `fuzz`
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=3'
	$(BIN)/python -m tests.parse.fuzz --seconds $(or $(SECONDS),20) $(NAME)

mutants: setup  ## mutation testing of the checks' comparisons (NAME='links …' for some modules); installs the extra `mutants`
	@$(BIN)/python -c 'import cosmic_ray' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'cosmic-ray>=8.4'
	nice -n 10 $(BIN)/python -m tests.mutants $(NAME)

molecule: setup  ## molecule's scenarios: roles, idempotence, testinfra on simulated rigs (SCENARIOS='upgrade …' or all)
	$(AS_ROOT) env PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/molecule --base-config .config/molecule/config.yml \
		test $(addprefix --scenario-name ,$(if $(filter all,$(SCENARIOS)),$(ALL_SCENARIOS),$(SCENARIOS)))

check-pages:  ## what the code knows of checks and faults, written into docs/
	@$(BIN)/python tools/check_pages.py

lint:  ## ruff, mypy, yamllint, ansible-lint
	@tools/setup.sh python
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict roles playbooks inventory molecule .config .pre-commit-config.yaml
	env PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline --profile production roles playbooks molecule

format:  ## ruff's formatter and safe fixes
	@tools/setup.sh python
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: setup  ## measure every figure that is claimed; NAME=demo runs one (writes bench/results.json)
	$(AS_ROOT) $(BIN)/python -m bench $(NAME)

sizes:  ## lengths of modules and functions: a report, not a gate
	@tools/setup.sh python
	@$(BIN)/python tools/sizes.py

lock:  ## write requirements.txt anew from pyproject.toml
	tools/lock.sh

clean:  ## remove what was built here; the rigs of an interrupted run too
	@if [ -x $(BIN)/rigctl ]; then $(AS_ROOT) $(BIN)/rigctl sim down --all; fi
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .ansible build dist *.egg-info
