#!/bin/sh
# test-tree.sh MPSFORGE CACHE BASELINE FOLDER: every stage that can run on Linux, on a whole tree of the baseline that CACHE has, and
# both overlays; what the stages came to is recorded beside its series (runs.json). FOLDER gets a copy of the tree, reports and wheels.
#
#   FORM=quick  or long: the form of the stages
#   SEEDS=...   the first is that of all stages, with the others operators runs again (default: 11 12 13)
set -eu
mpsforge=$1 tree=$2/trees/$3 baseline=$3 folder=$4
form=${FORM:-quick}
# What Linux can run. The others are excused: they are printed and recorded as not run, with the reason.
stages=series,checkout,reference,conformance,mac,runtime,python,bench,operators,one-thread,overlay
excused=device,upstream

stop() {
  echo "test-$baseline: $1" >&2
  exit "$2"
}
[ -d "$tree" ] || stop "there is no tree of PyTorch $baseline in the cache, $tree; get it: $mpsforge fetch --baseline $baseline --checkout $tree, or from a folder that has it: $mpsforge fetch --baseline $baseline --from FOLDER --checkout $tree" 5
case $form in
quick) quick=--quick ;;
long) quick= ;;
*) stop "FORM is \"$form\", and must be quick or long" 2 ;;
esac

# The cache's tree stays as it is: others may use it. An earlier demo may have left its series on it.
checkout=$folder/tree
rm -rf "$folder"
mkdir -p "$folder"
cp -a "$tree" "$checkout"
"$mpsforge" unapply --checkout "$checkout" --quiet >/dev/null
"$mpsforge" lint --baseline "$baseline" --patches patches
"$mpsforge" apply --checkout "$checkout" --baseline "$baseline" --patches patches
"$mpsforge" status --checkout "$checkout" --patches patches
"$mpsforge" export --checkout "$checkout" --patches patches --out "patches/$baseline" --check

# What fails does not keep the rest from being run and recorded; its exit code is this script's.
result=0
try() {
  code=0
  "$@" || code=$?
  case $code in
  2 | 130) exit $code ;; # a fault of this script, or somebody ended it
  esac
  [ $result != 0 ] || result=$code
}
verify() { # --require|--stages STAGES SEED REPORT
  # shellcheck disable=SC2086 # $quick is one word or none
  try "$mpsforge" verify "$1" "$2" $quick --seed "$3" --keep-going --checkout "$checkout" --patches patches --report "$4"
}
reports=$folder/all.json
# shellcheck disable=SC2086 # words
set -- ${SEEDS:-11 12 13}
verify --require $stages "$1" "$folder/all.json"
shift
for seed; do
  verify --stages checkout,operators "$seed" "$folder/operators-$seed.json"
  reports="$reports $folder/operators-$seed.json"
done
# shellcheck disable=SC2086 # our own paths, without spaces
"$mpsforge" baseline runs --checkout "$checkout" --patches patches --excuse $excused $reports
try "$mpsforge" overlay build --checkout "$checkout" --patches patches --out "$folder/linux" --platform linux
try "$mpsforge" overlay build --checkout "$checkout" --patches patches --out "$folder/macos" --platform macos
exit $result
