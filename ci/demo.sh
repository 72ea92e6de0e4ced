#!/bin/sh
# demo.sh MPSFORGE CACHE plain|full|rest [BASELINE]: the main job on a real PyTorch tree, and its report, demo.json and demo.html
# beside MPSFORGE.
#
# plain runs what shows that stock dies and patched lives, without sanitizers; full runs every stage that Linux can run, in the short
# form; rest is what full has beyond plain. Without BASELINE it takes what fetch takes here, and says which. The tree is kept below CACHE.
set -eu
mpsforge=$1 form=$3
baseline=${4:-$("$mpsforge" baseline choose)}
tree=$2/trees/$baseline
folder=$(dirname "$mpsforge")

# Minutes are those of two cores with an empty cache, without downloads; later runs take half.
cat <<END
PyTorch $baseline, in this order, with the minutes at which each part ends on two cores and an empty cache, downloads not counted:
   1  the tree, and the series on it
   5  one program by four threads, on stock sources and on patched ones: only what it needs is compiled, from the tree, now
END
case "$form" in
plain) cat <<END ;;
  15  all the sources, stock and patched; runtime, Python and PyTorch's operators by threads over both; the report
Left for make demo-full, some 20 minutes more: ThreadSanitizer, the reference and conformance suites, PyTorch's own tests, wheels for Linux and macOS.
END
full | rest) cat <<END ;;
  35  all the sources, stock and patched, and these with ThreadSanitizer, too; every stage that Linux can run; the report
END
esac

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
"$mpsforge" apply --checkout "$tree" --quiet >/dev/null

built=runtime
[ "$form" = rest ] || built=$built,python,operators
# Whether PyTorch's sources can be compiled here at all is seen by the first program. A fixed seed: what is drawn is the same each time,
# so that a failure is the change's. Other seeds draw others.
"$mpsforge" verify --stages runtime --scenarios parallel-basic --flavours plain --quick --seed 7 --checkout "$tree" --report "$folder/demo-first.json" || code=$?
case $code in
0) "$mpsforge" report --full "$folder/demo-first.json" | sed -n '/stock against patched/,/^$/p' ;;
5) echo "SKIP $built: PyTorch's sources cannot be compiled here (see above)" ;;
*) exit $code ;;
esac

stages=series,checkout
if [ "$form" != plain ]; then
  stages=$stages,reference,conformance
  built=$built,one-thread,overlay
  if [ -e "patches/$baseline/upstream.json" ]; then
    built=$built,upstream
  else
    echo "SKIP upstream: patches/$baseline has no upstream.json, the list of PyTorch's own tests that fail on a host build for reasons of its own"
  fi
fi
[ $code = 0 ] && stages=$stages,$built
if [ "$form" != plain ] && [ $code = 0 ]; then
  # Asked for by name it gets its wheels from PyPI, which may not be reached. The run of everything has it once
  # more, with the objects from the cache; that of the rest has not.
  "$mpsforge" verify --stages mac --quick --checkout "$tree" --report "$folder/demo-mac.json" || code=$?
  case $code in
  0) [ "$form" = rest ] || stages=$stages,mac ;;
  5) echo "SKIP mac: wheels of PyPI's, or Debian's clang, is not available here (see above)" ;;
  *) exit $code ;;
  esac
fi
case "$form" in
plain) "$mpsforge" run --build=false --checkout "$tree" --quick --seed 7 --stages "$stages" --flavours plain --report "$folder/demo.json" ;;
full) "$mpsforge" run --build=false --checkout "$tree" --quick --seed 7 --require "$stages" --report "$folder/demo.json" ;;
rest) "$mpsforge" run --build=false --checkout "$tree" --quick --seed 7 --flavours tsan --stages "$stages,bench" --require "$stages" --report "$folder/demo.json" ;;
esac
# The commits that were applied give the patch files again, byte for byte.
"$mpsforge" export --checkout "$tree" --out "patches/$baseline" --check
