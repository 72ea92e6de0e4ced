#!/bin/sh
# release.sh VERSION FOLDER TARGET...: binaries of a release and SHA256SUMS. A target is a system as Go names it, such as
# linux/arm64, built without cgo, or native, which is this machine with cgo. The same commit gives the same bytes with the
# same Go, and with cgo the same C++ compiler, in whatever folder.
set -eu
version=$1
folder=$2
shift 2
case $version in
  v[0-9]*.[0-9]*.[0-9]*) ;;
  *)
    echo "release: VERSION is \"$version\", and a release needs one such as v1.2.3: make release VERSION=v1.2.3" >&2
    exit 2
    ;;
esac
mkdir -p "$folder"
for target; do
  case $target in
    native) system=$(go env GOHOSTOS)/$(go env GOHOSTARCH) cgo=1 suffix= ;;
    */*) system=$target cgo=0 suffix=_nocgo ;;
    *)
      echo "release: target \"$target\" is neither native nor one such as linux/arm64" >&2
      exit 2
      ;;
  esac
  name=mpsforge_${version}_${system%/*}_${system#*/}$suffix
  echo "release: $name"
  # -buildvcs=true fails where git can not tell the commit, instead of leaving it out; -s -w: no symbols for a debugger.
  CGO_ENABLED=$cgo GOOS=${system%/*} GOARCH=${system#*/} go build -trimpath -buildvcs=true -tags urfave_cli_no_docs \
    -ldflags "-s -w -X main.release=$version" -o "$folder/$name" ./cmd/mpsforge
done
sum=$(command -v sha256sum || echo "shasum -a 256") # macOS has the second
(cd "$folder" && $sum mpsforge_"$version"_* >SHA256SUMS && cat SHA256SUMS)
