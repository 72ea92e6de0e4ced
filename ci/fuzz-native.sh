#!/bin/sh
# fuzz-native.sh TIME CACHE [NAME]: runs the fuzz targets in C++ (native/programs/fuzz_*.cc), or those whose name has NAME, with libFuzzer,
# AddressSanitizer and UndefinedBehaviorSanitizer, each for TIME: a number and s, m or h. The compiler is that of host builds, else clang++; without one
# they are skipped by name. What was found to reach new code stays in build/fuzz; an input with a finding is put below
# validate/stages/reference/testdata/fuzz, where plain go test runs it from then on.
set -eu
case $1 in
*h) seconds=$((${1%h} * 3600)) ;;
*m) seconds=$((${1%m} * 60)) ;;
*) seconds=${1%s} ;;
esac
root=$2/roots/trixie
tools=$2/roots/tools-$(echo "${root#/}" | tr / -)
libraries=$(echo "$root"/usr/lib/*-linux-gnu)
if [ -x "$tools/clang" ]; then
  compiler="$tools/clang --driver-mode=g++"
  link="--ld-path=$tools/ld.lld -Wl,--dynamic-linker=$(echo "$root"/usr/lib*/ld-linux-*) -Wl,--disable-new-dtags -Wl,-rpath,$libraries"
elif command -v clang++ >/dev/null; then
  compiler=clang++
  link=
else
  echo "SKIP the fuzz targets in C++: no clang, neither that of host builds in $root nor another"
  exit 0
fi
build=$PWD/build/fuzz
mkdir -p "$build"
flags="-std=c++17 -O1 -g -pthread -I. -fno-omit-frame-pointer -fno-sanitize-recover=all"
cd native
for source in programs/fuzz_*"${3:-}"*.cc; do
  [ -e "$source" ] || continue # no name has that
  name=${source#programs/fuzz_}
  name=${name%.cc}
  case $name in
  seeds) continue ;;
  rewrite) parts=msl/rewrite.cc ;;
  *) parts=$(echo metal/*.cc schedule/*.cc pool/*.cc) ;;
  esac
  echo "== $name in native/programs, $1"
  objects=
  for part in $parts "$source"; do
    object=$build/$(echo "$part" | tr / -).o
    # shellcheck disable=SC2086
    $compiler $flags -fsanitize=fuzzer-no-link,address,undefined -c "$part" -o "$object"
    objects="$objects $object"
  done
  # shellcheck disable=SC2086
  $compiler $flags -fsanitize=fuzzer,address,undefined $link $objects -o "$build/$name"
  seeds=../validate/stages/reference/testdata/fuzz/$name
  mkdir -p "$build/$name-corpus"
  ASAN_OPTIONS=allocator_may_return_null=1 "$build/$name" -max_total_time="$seconds" -max_len=800 -timeout=60 -print_final_stats=1 \
    -artifact_prefix="$seeds/" "$build/$name-corpus" "$seeds"
done
