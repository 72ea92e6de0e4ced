# make demo   the main job on a real PyTorch tree
# make test   everything that CI runs, with seconds per part
# make release VERSION=v1.2.3   binaries and checksums
# make bench  ratios: against git on the real tree, the software Metal against plain loops, slots against a mutex
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

.PHONY: all build demo test check tools unit bench release reference licences clean
all: build

build: $(MPSFORGE)
.PHONY: $(MPSFORGE)
$(MPSFORGE):
	@mkdir -p $(BUILD)
	$(GO) build -trimpath -tags $(TAGS) -o $@ ./cmd/mpsforge

# PyTorch v2.9.1 where GitHub can be reached, else Debian's 2.6.0.
demo: build
	$(call part,demo,sh ci/demo.sh $(MPSFORGE) $(CACHE))

# The checkers of C++ and Python at the versions that ci/tool.sh fixes, from PyPI, once, into the cache.
tools:
	@sh ci/tool.sh clang-format $(CACHE)
	@sh ci/tool.sh ruff $(CACHE)
	@sh ci/tool.sh mypy $(CACHE)

check: build
	$(call part,gofmt,test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; })
	$(call part,vet,$(GO) vet ./...)
	$(call part,vet without cgo,CGO_ENABLED=0 $(GO) vet ./...)
	$(call part,staticcheck,$(GO) run $(STATICCHECK) ./...)
	$(call part,clang-format,sh ci/clang-format.sh $(CACHE))
	$(call part,ruff,sh ci/ruff.sh $(CACHE))
	$(call part,series,$(MPSFORGE) lint --compare --quiet)

unit:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || echo "SKIP TestPageInBrowser and TestPlantedFaultsAreSeen: there is no Chromium (Debian: apt-get install chromium)"
	$(call part,go test,$(GO) test -timeout 45m ./...)

test: build check unit demo
	@echo "== all parts ended well"

bench: build $(TREE26)
	MPSFORGE_BENCH_TREE=$(TREE26) $(GO) test -run '^$$' -bench . -benchtime 15x -timeout 30m ./cmd/mpsforge ./patches
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 30m ./validate/... ./fork/build

$(TREE26): build
	$(MPSFORGE) fetch --baseline v2.6.0 --checkout $@

# Binaries and SHA256SUMS in build/release: this machine's and that for Apple silicon with cgo, the others without.
TARGETS := native linux/amd64 linux/arm64 darwin/amd64 darwin/arm64+cgo
release:
	MPSFORGE_CACHE="$(CACHE)" sh ci/release.sh "$(VERSION)" $(BUILD)/release $(TARGETS)

# The man page, the list of commands and that of messages are kept, so that they can be read without a build; a test tells when they are stale.
reference: build
	$(MPSFORGE) docs man > cmd/mpsforge/mpsforge.1
	$(MPSFORGE) docs markdown > cmd/mpsforge/COMMANDS.md
	$(GO) test ./docs -run TestMessagesAreListed -update >/dev/null

licences:
	sh cmd/mpsforge/licences.sh > cmd/mpsforge/licences.txt

clean:
	rm -rf $(BUILD)
