#!/bin/sh
# licences.sh: prints mpsforge's licence and those of every module that is linked into it. `make licences` keeps the
# output as licences.txt, which the binary carries; a test compares it with the modules of the build.
set -eu
cd "$(dirname "$0")/../.."
printf '==== mpsforge\n\n'
cat LICENSE
# Both platforms' modules: some are linked on one only.
for os in linux darwin; do
  GOOS=$os CGO_ENABLED=1 go list -tags urfave_cli_no_docs -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/mpsforge
done | LC_ALL=C sort -u | while read -r path version dir; do
  printf '\n==== %s %s\n\n' "$path" "$version"
  found=
  for file in "$dir"/LICENSE* "$dir"/LICENCE* "$dir"/COPYING* "$dir"/NOTICE*; do
    if [ -f "$file" ]; then
      cat "$file"
      found=yes
    fi
  done
  if [ -z "$found" ]; then
    echo "no licence file in $path" >&2
    exit 1
  fi
done
printf '\n==== Go standard library\n\n'
cat "$(go env GOROOT)/LICENSE"
