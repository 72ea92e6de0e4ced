#!/bin/sh
# README's pictures, of one run: pictures.sh REPORT.json LOG.jsonl. The log is that of the run, in the cache's folder logs:
# verify names it at its end. The terminal UI's picture is the frame at its line 1500, in the middle of stage runtime of
#   mpsforge verify --stages series,checkout,reference,conformance,mac,runtime,python,bench,operators,one-thread,overlay --quick --seed 7 --keep-going --report REPORT.json
set -eu
report=$1 log=$2
started=$(sed -n 's/^  "started": "\(.*\)\..*/\1/p' "$report")
grep -q "^{\"kind\":\"stream\",\"time\":\"$started" "$log" || {
    echo "pictures.sh: $log is not the log of the run of $report, which began at $started" >&2
    exit 1
}
recorded=internal/events/tui/testdata/picture.jsonl.gz
head -n 1500 "$log" | sed '1s/"args":\[[^]]*\]/"args":["--quick"]/' | gzip -9n > "$recorded"
go test ./internal/events/tui -run TestPictureIsAFrame -update > /dev/null
chromium --headless --no-sandbox --hide-scrollbars --window-size=1000,640 --screenshot=docs/pictures/report.png \
    "file://$(realpath "${report%.json}.html")"
PICTURES_REPORT=$(realpath "$report") go test ./docs -count 1 -run TestPicturesAreOfThisSeries
