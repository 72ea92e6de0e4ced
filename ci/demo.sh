#!/bin/sh
# demo.sh MPSFORGE CACHE: the main job on a real PyTorch tree, and its report.
#
# Takes v2.9.1 where GitHub answers, else Debian's source package of 2.6.0; says which. The tree is kept below CACHE.
set -eu
mpsforge=$1
trees=$2/trees
upstream=https://github.com/pytorch/pytorch.git

if GIT_TERMINAL_PROMPT=0 timeout 20 git ls-remote --exit-code "$upstream" refs/tags/v2.9.1 >/dev/null 2>&1; then
  baseline=v2.9.1
  flags=--no-submodules
else
  echo "GitHub does not answer: the demo uses Debian's PyTorch 2.6.0 instead of v2.9.1"
  baseline=v2.6.0
  flags=
fi
code=0
# shellcheck disable=SC2086 # flags is a list
"$mpsforge" fetch --baseline $baseline --checkout "$trees/$baseline" $flags || code=$?
if [ $code = 5 ]; then
  echo "SKIP demo: the source of PyTorch $baseline can not be had here (see above)"
  exit 0
elif [ $code != 0 ]; then
  exit $code
fi
# An earlier demo has left its series on the tree, which may be another one by now.
"$mpsforge" unapply --baseline $baseline --checkout "$trees/$baseline" --quiet >/dev/null
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
require=series,checkout,reference,conformance
if [ $baseline = v2.6.0 ]; then
  # The stock sources are built first: whether PyTorch's sources can be compiled here at all is seen by it.
  "$mpsforge" build --host --checkout "$trees/$baseline" || code=$?
  if [ $code = 0 ]; then
    require=$require,runtime,python
  elif [ $code = 5 ]; then
    echo "SKIP runtime and python: PyTorch's sources can not be compiled here (see above)"
  else
    exit $code
  fi
fi
"$mpsforge" run --build=false --baseline $baseline --checkout "$trees/$baseline" --quick --require $require --report "$folder/demo.json"
"$mpsforge" report "$folder/demo.json"
# The commits that were applied give the patch files again, byte for byte.
"$mpsforge" export --baseline $baseline --checkout "$trees/$baseline" --out "patches/$baseline" --check
