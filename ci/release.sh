#!/bin/sh
# release.sh VERSION FOLDER TARGET...: binaries of a release, each also in an archive with what belongs to it, wheels, and SHA256SUMS.
# A target is a system as Go names it, such as linux/arm64, built without cgo; native, which is this machine with cgo; one such as
# darwin/arm64+cgo, macOS with cgo from Linux, by zig's compiler from PyPI, which the folder MPSFORGE_CACHE keeps; or one such as
# wheel/v2.9.1: the macOS wheels over that torch, of the whole series, which stage mac has passed, and of its first part. The same
# commit gives the same bytes with the same Go, and with cgo the same C++ compiler, in whatever folder. A release is refused unless
# every stage passed on its series, which mpsforge baseline runs says; v0.0.0 is a rehearsal, of which nothing is released, and is
# not held to that.
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
if [ "$version" != v0.0.0 ] && ! CGO_ENABLED=0 go run -trimpath -tags urfave_cli_no_docs ./cmd/mpsforge baseline runs --check --patches patches >/dev/null; then
  echo "release: $version is refused: the series was not verified as it is (see above)" >&2
  exit 4
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# wheels BASELINE: both wheels, and the report of stage mac, which must have passed.
wheels() {
  rm -f "$folder/mpsforge_overlay-${1#v}+"*.whl
  mpsforge=${MPSFORGE:-$scratch/mpsforge} # another one in the test
  [ -x "$mpsforge" ] || go build -trimpath -tags urfave_cli_no_docs -o "$mpsforge" ./cmd/mpsforge
  for part in fixes ""; do
    tree=$scratch/tree-$part
    "$mpsforge" fetch --baseline "$1" --checkout "$tree"
    "$mpsforge" apply ${part:+--part "$part"} --checkout "$tree"
    "$mpsforge" overlay build --checkout "$tree" --platform macos --out "$folder"
  done
  "$mpsforge" verify --checkout "$tree" --stages checkout,mac --require mac --report "$folder/mpsforge_${version}_mac_$1.json"
  for form in md html junit.xml; do # the report's other forms
    rm -f "$folder/mpsforge_${version}_mac_$1.$form"
  done
}

for target; do
  case $target in
    wheel/*)
      echo "release: wheels over torch ${target#wheel/v}"
      wheels "${target#wheel/}"
      continue
      ;;
    native) system=$(go env GOHOSTOS)/$(go env GOHOSTARCH) cgo=1 suffix= ;;
    darwin/*+cgo)
      system=${target%+cgo} cgo=1 suffix=
      [ "$(go env GOHOSTOS)" = linux ] || { echo "SKIP release of $target: only Linux makes it"; continue; }
      ;;
    */*) system=$target cgo=0 suffix=_nocgo ;;
    *)
      echo "release: target \"$target\" is neither native nor one such as linux/arm64, darwin/arm64+cgo or wheel/v2.9.1" >&2
      exit 2
      ;;
  esac
  name=mpsforge_${version}_${system%/*}_${system#*/}$suffix
  echo "release: $name"
  arch=${system#*/}
  (
    case $target in
      *+cgo)
        compilers=$(go run ./ci/macos compilers "${MPSFORGE_CACHE:-$HOME/.cache/mpsforge}" "$arch")
        export CC="$compilers/cc-$arch" CXX="$compilers/c++-$arch"
        ;;
    esac
    # -buildvcs=true fails where git cannot name the commit, instead of leaving it out; -s -w: no symbols for a debugger.
    CGO_ENABLED=$cgo GOOS=${system%/*} GOARCH=$arch go build -trimpath -buildvcs=true -tags urfave_cli_no_docs \
      -ldflags "-s -w -X main.release=$version" -o "$folder/$name" ./cmd/mpsforge
  )
  case $target in *+cgo) go run ./ci/macos check "$folder/$name" "$arch" ;; esac
  go run ./ci/archive "$folder/$name"
done
sum=$(command -v sha256sum || echo "shasum -a 256") # macOS has the second
(cd "$folder" && find . -name "mpsforge_${version}_*" -o -name 'mpsforge_overlay-*.whl' | sed 's|^\./||' | LC_ALL=C sort | xargs $sum >SHA256SUMS && cat SHA256SUMS)
