#!/bin/sh
# demo.sh MPSFORGE CACHE [BASELINE]: the main job on a real PyTorch tree, and its report, demo.json and demo.html beside MPSFORGE.
#
# Without BASELINE it takes what fetch takes here, and says which. The tree is kept below CACHE.
set -eu
mpsforge=$1
baseline=${3:-$("$mpsforge" baseline choose)}
tree=$2/trees/$baseline

code=0
"$mpsforge" fetch --baseline "$baseline" --checkout "$tree" --no-submodules || code=$?
if [ $code = 5 ]; then
  echo "SKIP demo: the source of PyTorch $baseline is not available here (see above)"
  exit 0
elif [ $code != 0 ]; then
  exit $code
fi
# An earlier demo has left its series on the tree, which may be another one by now.
"$mpsforge" unapply --checkout "$tree" --quiet >/dev/null
folder=$(dirname "$mpsforge")
require=series,checkout,reference,conformance
built=runtime,python,operators,overlay
if [ -e "patches/$baseline/upstream.json" ]; then
  built=$built,upstream
else
  echo "SKIP upstream: patches/$baseline has no upstream.json, the list of PyTorch's own tests that fail on a host build for reasons of its own"
fi
# The stock sources are built first: whether PyTorch's sources can be compiled here at all is seen by it.
"$mpsforge" build --host --checkout "$tree" || code=$?
if [ $code = 0 ]; then
  require=$require,$built
  # Asked for by name it gets its wheels from PyPI, which may not be reached. The run below has the objects from the cache.
  "$mpsforge" verify --stages mac --quick --checkout "$tree" --report "$folder/demo-mac.json" || code=$?
  case $code in
  0) require=$require,mac ;;
  5) echo "SKIP mac: wheels of PyPI's, or Debian's clang, is not available here (see above)" ;;
  *) exit $code ;;
  esac
elif [ $code = 5 ]; then
  echo "SKIP $built: PyTorch's sources cannot be compiled here (see above)"
else
  exit $code
fi
# A fixed seed: what operators and upstream draw is the same each time, so that a failure is the change's. Other seeds draw others.
"$mpsforge" run --build=false --checkout "$tree" --quick --seed 7 --require $require --report "$folder/demo.json"
# The commits that were applied give the patch files again, byte for byte.
"$mpsforge" export --checkout "$tree" --out "patches/$baseline" --check
