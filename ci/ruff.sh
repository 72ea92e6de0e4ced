#!/bin/sh
# ruff.sh CACHE: checks the project's own Python files. Skips by name where ruff cannot be had.
set -eu
tool=$(sh ci/tool.sh ruff "$1") || { echo "SKIP ruff: make tools cannot install it"; exit 0; }
"$tool" check --quiet --no-cache --config 'lint.isort.known-third-party = ["torch"]' validate native
