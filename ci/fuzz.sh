#!/bin/sh
# fuzz.sh TIME [NAME]: runs each fuzz target, or those whose name has NAME, one after another, each for TIME as go test has it (10m).
# A finding ends it; its input is below testdata/fuzz of the package, where plain go test runs it from then on.
set -eu
time=$1
grep -rHo --include='*_test.go' "^func Fuzz[A-Za-z]*${2:-}[A-Za-z]*" . | sort | while IFS=: read -r file function; do
  name=${function#func }
  echo "== $name in $(dirname "$file"), $time"
  ${GO:-go} test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 2s -timeout 0 "$(dirname "$file")"
done
