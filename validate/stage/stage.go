// Package stage is the contract between the verification pipeline and its stages: what a stage is, what it needs, and what it
// is given. A stage imports this package and never the pipeline or another stage.
package stage

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/kept"
)

// Stage is one step of the pipeline.
type Stage struct {
	Name     string
	Question string // that its verdict answers
	Needs    []Need // of this machine; what is missing makes the stage skip itself, with the reason
	// Splits says that its jobs can be divided among shards; InEach, that it is short, so that each shard runs all of it.
	Splits, InEach bool
	// Run fills in the report. An error made by Skipf ends the stage without a verdict, any other one with the verdict
	// failed.
	Run func(ctx context.Context, env *Env, report *reports.Stage) error
}

// Need is something that a stage cannot run without.
type Need string

// The needs. The pipeline's doctor says which of them this machine meets.
const (
	NeedsCache     Need = "cache folder"       // one that can be written
	NeedsCheckout  Need = "checkout"           // a PyTorch checkout
	NeedsCompiler  Need = "C++17 compiler"     // of the machine
	NeedsReference Need = "built-in reference" // an mpsforge that was built with cgo
	NeedsMetal     Need = "Metal device"       // Apple's
	NeedsRoot      Need = "Debian root"        // packages that host builds are made with
	NeedsTorch     Need = "torch"              // a Python whose torch has device mps: on Linux a host build's, which needs checkout and root
)

// Options choose what a verification does.
type Options struct {
	Series *patches.Series
	Lint   *patches.LintResult
	// Coverage is which lines of the series have run, as recorded; nil if nobody looked.
	Coverage *patches.Coverage
	// Checkout is nil when there is none; NoCheckout then says why.
	Checkout   *fork.Checkout
	NoCheckout string
	Stages     []string // empty: all; one that is named must run
	Require    []string // more stages that must run
	Quick      bool
	KeepGoing  bool
	// FirstFailure ends a stage that can with its first failed check.
	FirstFailure bool
	Seed         uint64 // 0: taken from the clock
	Shard        Shard
	Cache        string // folder for compiled subjects
	Artifacts    string // folder for what a failure leaves
	// Write, unless nil, writes the report. What was kept of the run for one that goes on is removed only then.
	Write     func(*reports.Report) error
	Tool      reports.Tool
	Host      HostOptions // of host builds
	Python    PythonOptions
	Operators OperatorOptions
	Upstream  UpstreamOptions
	OneThread OneThreadOptions
}

// HostOptions say with what PyTorch's sources are built.
type HostOptions struct {
	Root  string // a Debian trixie system's top folder; empty: one in the cache
	Torch string // a folder with torch/; empty: Debian's
	Jobs  int
	// Ablate names patches, without each of which the series is built and run, too; patches.AllPatches means all.
	Ablate []string
	// Scenarios of the stage runtime, which run in this order; empty: all, and its other checks.
	Scenarios []string
	// Flavours to build: empty means plain and tsan.
	Flavours []builds.Flavour
	// NoStock leaves out stock sources: what they do was seen before.
	NoStock bool
	// Counted, unless nil, has builds of the whole series that would be plain count which lines run, and is given each as it is made.
	Counted func(*host.Build) error
}

// PythonOptions are of the stages python and bench.
type PythonOptions struct {
	Interpreter string // a Python with the torch to be tested; empty: the host build's on Linux
	Stock       string // a Python with an unpatched torch, for comparison; empty: the host build's on Linux
	Device      string // mps or cpu; empty: mps
	Only        string // a regular expression over names of tests; empty: all
	Threads     []int  // thread counts instead of each test's own
	Repeat      int    // processes for each test, thread count and path; 0: one in the short form, else three
	// Environment is put over that of its processes, as NAME=value.
	Environment []string
	// Warmup lets one thread use the device before the others. It hides what a cold start shows.
	Warmup bool
}

// OperatorOptions are of the stage operators.
type OperatorOptions struct {
	Names  []string // entries of the operator database; empty: all, and the comparisons with other builds
	Forms  []string // in which the named ones run; empty: all
	DTypes []string // such as float16; empty: the main one of each
	// Environment is put over that of its processes, as NAME=value; tests add operators of their own through it.
	Environment []string
}

// UpstreamOptions are of the stage upstream.
type UpstreamOptions struct {
	Tests string // a regular expression over names of PyTorch's tests, FILE:Class.method; empty: all, in the short form a sample
}

// OneThreadOptions are of the stage one-thread.
type OneThreadOptions struct {
	Programs string // a regular expression over names of programs; empty: those that the seed draws
}

// Env is what a stage is given: the options of the run, where its events go, and what the report says of the whole run.
type Env struct {
	Options
	Sink     events.Sink
	Identity *reports.Identity // a stage that proves more of it fills it in
	Machine  *reports.Machine
	Kept     *kept.Run // what the stage keeps for a run after this one
	Built    *Built    // the host builds that stages of this run have made; nil: each makes its own
}

// Built are the host builds of one run of the pipeline, so that no later stage asks the compiler cache for their objects again.
type Built struct {
	mutex sync.Mutex
	all   map[string]*host.Build
}

// Once gives the build of a name, which make makes unless a stage has. The name says all that the build depends on.
func (b *Built) Once(name string, make func() (*host.Build, error)) (*host.Build, error) {
	if b == nil {
		return make()
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if built := b.all[name]; built != nil {
		return built, nil
	}
	built, err := make()
	if err == nil {
		if b.all == nil {
			b.all = map[string]*host.Build{}
		}
		b.all[name] = built
	}
	return built, err
}

type skipError struct{ reason string }

func (e skipError) Error() string { return e.reason }

// Skipf is the error that ends a stage without a verdict; its text is the reason.
func Skipf(format string, args ...any) error { return skipError{fmt.Sprintf(format, args...)} }

// SkipReason gives the reason of an error made by Skipf.
func SkipReason(err error) (reason string, skipped bool) {
	var skip skipError
	skipped = errors.As(err, &skip)
	return skip.reason, skipped
}

// AtOnce is how many processes under test run side by side: each has threads itself.
func AtOnce() int { return min(2, runtime.NumCPU()) }

// StepName is the name of a stage's step in the event stream.
func StepName(stage string) string { return "verify " + stage }

// Exactly is a regular expression for these names and no others, as the options that select tests take one.
func Exactly(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}
