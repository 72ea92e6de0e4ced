#!/bin/sh
# clang-format.sh CACHE: checks the layout of the project's own C++ files. Skips by name where clang-format cannot be had.
set -eu
tool=$(sh ci/tool.sh clang-format "$1") || { echo "SKIP clang-format: make tools cannot install it"; exit 0; }
git ls-files -- '*.cc' '*.cpp' '*.h' '*.m' '*.mm' | xargs "$tool" --dry-run --Werror
