# make demo   the main job on a real PyTorch tree, without sanitizers: the first truth within 5 minutes, the whole within 15
# make demo-full   every stage that Linux can run, with ThreadSanitizer
# make demo-rest   what make demo leaves out of it
# make test   linters, the fast tests and the demo, with seconds per part
# make test-full   every test and the whole demo
# make test-v2.9.1   every stage that Linux can run, on the cache's whole tree of v2.9.1, recorded beside its series; FORM=long, SEEDS="11 12 13"
# make test-prefixes   compiles the series up to each of its patches, and runs the scenarios that it is for; BASELINE=v2.6.0, UNTIL="NAMES"
# make fuzz   all fuzz targets, FUZZTIME each (10m), one after another; FUZZ=Name for those with Name
# make kills  commands killed at each fault point and at KILLS random moments (1000); with CHECKOUT=DIR on copies of it, and those that need a host build
# make soak   operators and scenarios by threads for SOAK (60m), with memory, files and threads watched
# make tidy   clang-tidy over the C++ of native/
# make vulns  govulncheck: known faults of the Go modules
# make release VERSION=v1.2.3   binaries, wheels for Macs and checksums
# make bench  ratios: against git on the real tree, the software Metal against plain loops, slots against a mutex; instructions, locks and calls
#   for each operator, stock and patched, counted by callgrind
GO       ?= go
# urfave/cli documents itself through a Markdown library unless told not to; without it the program starts faster.
TAGS     := urfave_cli_no_docs
BUILD    := build
MPSFORGE := $(BUILD)/mpsforge
# The real trees are kept in the cache folder, so that test, demo and bench fetch them once.
CACHE    := $(or $(MPSFORGE_CACHE),$(HOME)/.cache/mpsforge)
TREE26   := $(CACHE)/trees/v2.6.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# bash can tell what a part took of the clock and of processors; more of the clock only is a busy machine.
SHELL    := bash

# part NAME,COMMAND runs a command and prints how long it took.
define part
	@echo "== $(1)"; exec 2>&1; TIMEFORMAT='== $(1): %0R s (processors: %0U s user, %0S s system)'; time ( $(2) )
endef

.PHONY: all build demo demo-full demo-rest test test-full test-v2.9.1 test-prefixes check vet tools unit unit-short bench fuzz kills soak tidy vulns release reference pictures licences clean
all: build

build: $(MPSFORGE)
.PHONY: $(MPSFORGE)
$(MPSFORGE):
	@mkdir -p $(BUILD)
	$(GO) build -trimpath -tags $(TAGS) -o $@ ./cmd/mpsforge

# BASELINE empty: PyTorch v2.9.1 where GitHub can be reached or the cache has its tree, else Debian's 2.6.0.
BASELINE :=
demo: build
	$(call part,demo,sh ci/demo.sh $(MPSFORGE) $(CACHE) plain $(BASELINE))

demo-full: build
	$(call part,demo-full,sh ci/demo.sh $(MPSFORGE) $(CACHE) full $(BASELINE))

demo-rest: build
	$(call part,demo-rest,sh ci/demo.sh $(MPSFORGE) $(CACHE) rest $(BASELINE))

# The checkers of C++ and Python at the versions that ci/tool.sh fixes, from PyPI, once, into the cache.
tools:
	@sh ci/tool.sh clang-format $(CACHE)
	@sh ci/tool.sh ruff $(CACHE)
	@sh ci/tool.sh mypy $(CACHE)

# With -trimpath, in GOFLAGS as in the gate, the cache may give vet a cgo package as another clone compiled it, with the names of files of that
# clone, which may be gone (docs/CONTRIBUTING.md).
vet:
	$(GO) vet $$($(GO) list -f '{{if not .CgoFiles}}{{.ImportPath}}{{end}}' ./...)
	$(GO) vet -trimpath=false $$($(GO) list -f '{{if .CgoFiles}}{{.ImportPath}}{{end}}' ./...)
	CGO_ENABLED=0 $(GO) vet ./...

check: build
	$(call part,gofmt,test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; })
	$(call part,vet,$(MAKE) -s vet)
	$(call part,staticcheck,$(GO) run $(STATICCHECK) ./...)
	$(call part,clang-format,sh ci/clang-format.sh $(CACHE))
	$(call part,ruff,sh ci/ruff.sh $(CACHE))
	$(call part,series,$(MPSFORGE) lint --compare --quiet)

unit-short: # -trimpath as in build, so that what cgo compiled is used again; vet is a part of check
	$(call part,go test -short,$(GO) test -trimpath -vet=off -short -timeout 15m ./...)

# All tests. The gate sets MPSFORGE_LONG_TESTS to nothing: then those that take minutes each are left out.
unit: export MPSFORGE_LONG_TESTS ?= 1
unit:
	@[ -n "$$MPSFORGE_LONG_TESTS" ] || git grep -hoE 'SKIP [^"]*MPSFORGE_LONG_TESTS=1' -- '*_test.go'
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || echo "SKIP TestPageInBrowser and TestPlantedFaultsAreSeen: there is no Chromium (Debian: apt-get install chromium)"
	$(call part,go test,$(GO) test -trimpath -vet=off -timeout 45m ./...)

# What every Debian system can get, whatever its cache has. Some tests are of the tree that the demo gets. With UNIT=unit no test is left out.
UNIT := unit-short
test: BASELINE := v2.6.0
test: build check demo $(UNIT)
	@echo "== all parts ended well; make test-full runs the rest"

test-full: BASELINE := v2.6.0
test-full: build check demo-full unit
	@echo "== all parts ended well"

# No part of test: the tree cannot be had everywhere.
FORM  := quick
SEEDS := 11 12 13
test-v2.9.1: export GOFLAGS := $(GOFLAGS) -buildvcs=true # the record names the commit that ran
test-v2.9.1: build
	$(call part,$@,FORM="$(FORM)" SEEDS="$(SEEDS)" sh ci/test-tree.sh $(MPSFORGE) $(CACHE) v2.9.1 $(BUILD)/test-v2.9.1)

UNTIL :=
test-prefixes: build
	$(call part,$@,UNTIL="$(UNTIL)" sh ci/test-prefixes.sh $(MPSFORGE) $(CACHE) $(if $(BASELINE),$(BASELINE),v2.9.1) $(BUILD)/test-prefixes)

# FILES,PATCHES,COMMITS of a generated repository, such as 100000,500,200000; without them two small ones.
SCALE :=
bench: build $(TREE26)
	MPSFORGE_BENCH_TREE=$(TREE26) $(GO) test -run '^$$' -bench . -skip Scale -benchtime 15x -timeout 30m ./cmd/mpsforge ./patches
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 30m ./validate/... ./fork/macos/build ./internal/events/tui ./reports
	MPSFORGE_BENCH_SCALE=$(SCALE) $(GO) test -run '^$$' -bench Scale -benchtime 1x -timeout 60m ./cmd/mpsforge

FUZZTIME := 10m
fuzz:
	@GO="$(GO)" GOFLAGS=-tags=$(TAGS) sh ci/fuzz.sh $(FUZZTIME) $(FUZZ)
	@sh ci/fuzz-native.sh $(FUZZTIME) $(CACHE) $(FUZZ)

KILLS := 1000
CHECKOUT :=
kills:
	$(if $(CHECKOUT),,MPSFORGE_KILLS_FAULT=fault $(GO) test -count 1 -tags faults -timeout 0 -run 'TestScripts/kills$$' -v ./cmd/mpsforge)
	MPSFORGE_KILLS=$(KILLS) MPSFORGE_KILLS_CHECKOUT=$(abspath $(CHECKOUT)) $(GO) test -count 1 -timeout 0 -run 'TestScripts/kills$(if $(CHECKOUT),(_host)?,(_build)?)$$' -v ./cmd/mpsforge

SOAK := 60m
soak:
	MPSFORGE_SOAK=$(SOAK) $(GO) test -count 1 -timeout 0 -run 'TestSoak$$' -v ./validate/stages/operators ./validate/stages/runtime

tidy:
	$(call part,clang-tidy,sh ci/tidy.sh $(CACHE))

vulns:
	$(call part,govulncheck,GO="$(GO)" sh ci/vulns.sh)

$(TREE26): build
	$(MPSFORGE) fetch --baseline v2.6.0 --checkout $@

# Binaries, the macOS wheels of each baseline and SHA256SUMS in build/release. This machine's binary and that for Apple silicon have cgo, the
# others have not.
TARGETS := native linux/amd64 linux/arm64 darwin/amd64 darwin/arm64+cgo wheel/v2.9.1 wheel/v2.6.0
release:
	MPSFORGE_CACHE="$(CACHE)" sh ci/release.sh "$(VERSION)" $(BUILD)/release $(TARGETS)

# The man page and the list of commands are kept, so that they can be read without a build; a test fails when they are stale.
reference: build
	$(MPSFORGE) docs man > cmd/mpsforge/mpsforge.1
	$(MPSFORGE) docs markdown > cmd/mpsforge/COMMANDS.md

# README's pictures: a frame of the terminal UI and the first screen of the report, of a run on v2.9.1's tree (ci/pictures.sh).
pictures:
	sh ci/pictures.sh "$(REPORT)" "$(LOG)"

licences:
	sh cmd/mpsforge/licences.sh > cmd/mpsforge/licences.txt

clean:
	rm -rf $(BUILD)
