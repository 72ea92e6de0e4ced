#!/bin/sh
# Checks the layout of the project's own C++ files. Skips by name where no clang-format is installed.
set -eu
tool=$(command -v clang-format || command -v clang-format-14 || command -v clang-format-19 || true)
if [ -z "$tool" ]; then
  echo "SKIP clang-format: not installed (Debian: apt-get install clang-format)"
  exit 0
fi
git ls-files -- '*.cc' '*.cpp' '*.h' '*.m' '*.mm' | xargs "$tool" --dry-run --Werror
