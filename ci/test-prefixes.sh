#!/bin/sh
# test-prefixes.sh MPSFORGE CACHE BASELINE FOLDER: the series up to each of its patches, on a copy of the tree that CACHE has: whether it compiles, and
# passes the scenarios of the stage runtime whose patches it has. Some five minutes a patch. FOLDER gets the tree and the reports.
#
#   UNTIL=NAMES   only up to these patches
set -eu
mpsforge=$1 tree=$2/trees/$3 baseline=$3 folder=$4
[ -d "$tree" ] || {
  echo "test-prefixes: there is no tree of PyTorch $baseline in the cache, $tree; get it: $mpsforge fetch --baseline $baseline --checkout $tree" >&2
  exit 5
}
rm -rf "$folder"
mkdir -p "$folder/patches"
cp -a "$tree" "$folder/tree"
"$mpsforge" unapply --checkout "$folder/tree" --quiet >/dev/null
result=0
for last in ${UNTIL:-$(sed -n 's/\.patch$//p' "patches/$baseline/series")}; do
  rm -rf "$folder/patches/$baseline"
  cp -r "patches/$baseline" "$folder/patches/$baseline"
  sed "/^$last\.patch\$/q" "patches/$baseline/series" >"$folder/patches/$baseline/series"
  (cd "$folder/patches/$baseline" && for patch in *.patch; do grep -qx "$patch" series || rm "$patch"; done)
  echo "== up to $last"
  "$mpsforge" apply --checkout "$folder/tree" --baseline "$baseline" --patches "$folder/patches" --quiet
  code=0
  "$mpsforge" verify --stages checkout,runtime --quick --seed 7 --keep-going --checkout "$folder/tree" --patches "$folder/patches" --report "$folder/$last.json" || code=$?
  case $code in
  2 | 130) exit $code ;; # a fault of this script, or somebody ended it
  esac
  [ $result != 0 ] || result=$code
done
exit $result
