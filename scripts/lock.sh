#!/bin/sh
# Resolves requirements.lock (dependencies and build backend) and requirements-dev.lock (those
# and what the tests need), for every Python from 3.11 on, with hashes. $1 is uv.
set -eu
cd "$(dirname "$0")/.."
compile() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
        --custom-compile-command 'make lock' "$@"
}
uv=$1
compile pyproject.toml --group build --output-file requirements.lock
compile pyproject.toml --group dev --constraint requirements.lock \
    --output-file requirements-dev.lock
