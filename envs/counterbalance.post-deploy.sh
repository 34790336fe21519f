#!/usr/bin/env bash
# Snakemake runs this in the project's folder, with the new environment active.
set -euo pipefail
python -m pip install --no-deps --require-hashes -r envs/requirements-build.lock
python -m pip install --no-deps --require-hashes --no-build-isolation -r envs/requirements.lock
python -m pip install --no-deps --no-build-isolation -e .
