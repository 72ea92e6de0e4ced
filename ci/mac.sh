#!/bin/sh
# On an Apple-silicon Mac, in a clone: probes its GPU, tries the overlay of an argument, builds the patched PyTorch and verifies it, which takes hours. It sends nothing.
set -eu
mkdir -p mac-report && python3 -m venv mac-python && mac-python/bin/pip install --quiet torch==2.9.1 numpy
if mac-python/bin/python ci/probe.py > mac-report/probe.json && make build; then
  [ $# = 0 ] || { mac-python/bin/pip install "$1" && mac-python/bin/python -m mpsforge_overlay && mac-python/bin/python -m mpsforge_overlay --selftest --output mac-report/selftest.json; } > mac-report/overlay.txt 2>&1 || true
  build/mpsforge doctor > mac-report/doctor.txt || true
  [ ! -f mac-report/selftest.json ] || build/mpsforge overlay compare mac-report/selftest.json > mac-report/selftest.txt || true
  build/mpsforge verify --stages device --report mac-report/device.json || true
  build/mpsforge metal compare mac-report/device.artifacts/facts-apple.json > mac-report/device.txt || true
  build/mpsforge run --baseline v2.9.1 --checkout pytorch --quick --report mac-report/report.json || true
fi
tar czf mac-report.tar.gz mac-report && echo "Please open an issue where you cloned this from, and attach mac-report.tar.gz: it holds the probe, doctor's answer, the facts of its Metal, the report, and what the overlay said."
