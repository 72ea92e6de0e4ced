#!/bin/sh
# tool.sh NAME CACHE: prints the path of a checker at the version that is fixed here. It is installed from PyPI into the cache
# unless it is there; another version on the machine is not used, as its judgement would be another one.
set -eu
case $1 in
clang-format) version=19.1.7 program=clang_format/data/bin/clang-format ;;
clang-tidy) version=19.1.0.1 program=clang_tidy/data/bin/clang-tidy ;;
ruff) version=0.15.0 program=bin/ruff ;;
# For the Python of host builds; at the version that PyTorch 2.6.0 checks itself with.
mypy) version=1.13.0 program=bin/mypy with="mypy-extensions==1.0.0 typing-extensions==4.12.2 --python-version 3.13" ;;
*) echo "tool.sh: no tool $1" >&2; exit 2 ;;
esac
folder=$2/tools/$1-$version
if [ ! -x "$folder/$program" ]; then
  mkdir -p "$2/tools"
  new=$(mktemp -d "$2/tools/new-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  # shellcheck disable=SC2086 # the words of with are several
  python3 -m pip install --quiet --disable-pip-version-check --no-warn-script-location --root-user-action ignore --no-deps --only-binary :all: --target "$new" "$1==$version" ${with:-} >&2
  rm -rf "$folder"
  mv "$new" "$folder"
fi
echo "$folder/$program"
