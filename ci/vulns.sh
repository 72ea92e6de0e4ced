#!/bin/sh
# vulns.sh: known faults of the Go modules and of Go's library that this program reaches, by govulncheck. Skips by name where its
# database cannot be read.
set -u
said=$(${GO:-go} run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./... 2>&1)
code=$?
case $said in
*"fetching vulnerabilities: "*) echo "SKIP govulncheck: its database cannot be read: ${said#*fetching vulnerabilities: }" ;;
*)
  echo "$said"
  exit $code
  ;;
esac
