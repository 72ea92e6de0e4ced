#!/usr/bin/env bash
# verify.sh MPSFORGE: what the action does with its inputs, which are in the environment: PATCHES, BASELINE, STAGES, QUICK, CHECKOUT and
# REPORT. The report goes into the step's summary whether or not the verification ended well; the exit code is the verification's.
set -euo pipefail
mpsforge=$1
arguments=(run --baseline "$BASELINE" --stages "$STAGES" --checkout "$CHECKOUT" --report "$REPORT/report.json")
[ -z "$PATCHES" ] || arguments+=(--patches "$PATCHES")
[ "$QUICK" = false ] || arguments+=(--quick)
mkdir -p "$REPORT"
rm -f "$REPORT/report.json" # of a run before, on a runner of one's own
code=0
"$mpsforge" "${arguments[@]}" || code=$?
[ ! -e "$REPORT/report.json" ] || "$mpsforge" report github "$REPORT/report.json"
exit "$code"
