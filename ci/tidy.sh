#!/bin/sh
# tidy.sh CACHE: clang-tidy (.clang-tidy) over the C++ of native/ that needs neither Objective-C nor PyTorch's headers, but for tests and
# benchmarks. Skips by name where clang-tidy cannot be had.
set -eu
tool=$(sh ci/tool.sh clang-tidy "$1") || { echo "SKIP clang-tidy: it cannot be installed from PyPI"; exit 0; }
llvm=$1/roots/trixie/usr/lib/llvm-19/include without=
[ -d "$llvm" ] || { echo "SKIP clang-tidy of native/translate: $llvm is not there; a host build gets it"; without='|translate'; }
# shellcheck disable=SC2016 # the inner shell expands it
git ls-files -- native/ | grep '\.cc$' | grep -vE "^native/(objc|torch|mac|overlay$without)/|_(test|bench)\.cc\$|/slots_search\.cc\$" |
  xargs -P "$(nproc)" -n 4 sh -c 'tool=$1 llvm=$2; shift 2
    "$tool" --quiet --warnings-as-errors="*" "$@" -- -std=c++17 -Inative -isystem "$llvm" -pthread' tidy "$tool" "$llvm"
