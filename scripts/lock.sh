#!/bin/sh
# Resolves requirements.lock (dependencies and build backend), requirements-wheel.lock (those and
# what `make wheel` needs) and requirements-dev.lock (those of the first and what the tests need),
# for every Python from 3.11 on, with hashes. $1 is uv.
set -eu
cd "$(dirname "$0")/.."
compile() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
        --custom-compile-command 'make lock' "$@"
}
uv=$1
compile packages/equipoise/pyproject.toml --group pyproject.toml:build --output-file requirements.lock
compile packages/equipoise/pyproject.toml --group pyproject.toml:wheel --constraint requirements.lock \
    --output-file requirements-wheel.lock
compile packages/equipoise/pyproject.toml --group pyproject.toml:dev --constraint requirements.lock \
    --output-file requirements-dev.lock
