package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/fork/macos/build"
	"mpsforge/internal/run"
	"mpsforge/internal/suggest"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
	"mpsforge/validate/stages/operators"
	runtimestage "mpsforge/validate/stages/runtime"
)

func verifyCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "verify", usage: "run the verification pipeline and write a report", ui: workUI, logs: true,
		about: `Stages run in this order: ` + strings.Join(validate.StageNames(), ", ") + `. A failed stage stops the
later ones. The report is written as JSON, and beside it as Markdown, as an HTML page and in JUnit's XML.

  mpsforge verify                                    all that can run here
  mpsforge verify --stages series,runtime --quick    exit code 5 unless both ran
  mpsforge verify --require runtime                  all, and 5 unless it ran
  mpsforge verify --report out.json --seed 7         the same random choices again
  mpsforge verify --last-failed                      only what failed last time
  mpsforge verify --stages runtime --ablate all      which patch fixes what?
  mpsforge verify --stages runtime --scenarios parallel-basic --flavours plain --quick    stock beside patched, in minutes
  mpsforge verify --list                             the Python parallel tests
  mpsforge verify --stages operators --seed 7 --shard 2/8    an eighth of it, on one of eight machines

  mpsforge verify --stages python --only '^linear' --threads 2,8 --repeat 20
  mpsforge verify --stages python --python VENV/bin/python --stock OLD/bin/python    a build of your own against stock, on a Mac
  mpsforge verify --stages operators --operators unfold --seed 7    one of PyTorch's operators under threads, with seed 7
  mpsforge verify --stages upstream --tests 'TestMPS\.test_exp'    PyTorch's own tests, stock against patched`,
		flags: checkoutFlags(append(verifyFlags(),
			&cli.BoolFlag{Name: "last-failed",
				Usage: "run only what failed in the last run, with its seed: stages, and tests of python and upstream; the last run is the report " +
					"at --report, else the latest in the cache"})...),
		action: func(ctx context.Context, c call) (result, error) { return c.verify(ctx) },
	})
}

// verifyFlags begins with those of all stages; the others are in groups that name their stages.
func verifyFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		&cli.StringFlag{Name: "stages", Usage: "run only these stages, `LIST` separated by commas; exit code 5 unless all of them ran"},
		&cli.BoolFlag{Name: "quick", Usage: "run the short form of each stage"},
		&cli.StringFlag{Name: "report",
			Usage: "write the report to `FILE.json`, or with - as JSON to standard output, too (default: reports/ in the cache folder)"},
		&cli.StringFlag{Name: "require", Usage: "exit with code 5 unless the stages in `LIST` ran"},
		&cli.BoolFlag{Name: "keep-going", Usage: "run later stages even if one failed"},
		&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` to seed all random choices (default: from the clock)"},
		&cli.StringFlag{Name: "shard",
			Usage: "run one of several parts of the stages' jobs, `I/N` such as 2/8; needs --stages and --seed; report merge makes one report of all parts"},
	}, choiceFlags(), inGroup("Host builds (Linux)", hostFlags()))
}

// choiceFlags make single stages run something else than their form. A group's title names the stages that read its flags;
// overlay runs others, with their flags.
func choiceFlags() []cli.Flag {
	return slices.Concat(
		inGroup("Stage runtime", []cli.Flag{
			&cli.StringFlag{Name: "scenarios", Usage: "only the scenarios in `LIST`; for " + runtimestage.FirstScenario +
				" alone only the sources that it needs are compiled"}}),
		inGroup("Stages runtime, operators", []cli.Flag{
			&cli.StringFlag{Name: "flavours", Usage: "build the flavours in `LIST`: " + flavourNames() + " (default: plain,tsan)"},
			&cli.StringFlag{Name: "ablate", Usage: "leave out the patches in `LIST`, or all, one at a time, and show what fails"}}),
		inGroup("Stages python, overlay", []cli.Flag{
			&cli.BoolFlag{Name: "list", Usage: "list the Python parallel tests and run nothing"},
			&cli.BoolFlag{Name: "warmup", Usage: "one thread uses the device before the others; this hides failures of a cold start"}}),
		inGroup("Stages python, bench, overlay", []cli.Flag{
			&cli.StringFlag{Name: "only", Usage: "only tests whose names match the regular expression `PATTERN`"}}),
		inGroup("Stages python, bench, operators, overlay", []cli.Flag{
			&cli.StringFlag{Name: "threads", Usage: "thread counts, `LIST` separated by commas (default: each test's own)"},
			&cli.IntFlag{Name: "repeat", Usage: "run each test `N` times, each in a new process (default: 3; 1 with --quick or --operators)"},
			&cli.StringFlag{Name: "device", Value: "mps", Usage: "`DEVICE` mps, or cpu to try the harness alone"}}),
		inGroup("Stages python, bench, operators, upstream, overlay", []cli.Flag{
			&cli.StringFlag{Name: "python", EnvVars: []string{"MPSFORGE_PYTHON"},
				Usage: "test the torch of `PYTHON` (default on Linux: the host build's)"},
			&cli.StringFlag{Name: "stock", Usage: "compare with the unpatched torch of `PYTHON` (default on Linux: the host build's)"}}),
		inGroup("Stages operators, overlay", []cli.Flag{
			&cli.StringFlag{Name: "operators", Usage: "only these `OPERATORS` of PyTorch's database, separated by commas"},
			&cli.StringFlag{Name: "form", Usage: "with --operators, only these `FORMS` (default: all)"},
			&cli.StringFlag{Name: "dtype", Usage: "with --operators, these `TYPES` (default: float32 where the operator has it)"}}),
		inGroup("Stages upstream, overlay", []cli.Flag{
			&cli.StringFlag{Name: "tests", Usage: "only tests whose names, FILE:Class.method, match the regular expression `PATTERN`"}}),
		inGroup("Stage one-thread", []cli.Flag{
			&cli.StringFlag{Name: "programs",
				Usage: "only programs whose names, such as \"operator add float32 backward\", match the regular expression `PATTERN`"}}))
}

// pythonOptions reads them.
func (c call) pythonOptions() (stage.PythonOptions, error) {
	options := stage.PythonOptions{Interpreter: c.String("python"), Stock: c.String("stock"), Device: c.String("device"), Only: c.String("only"),
		Repeat: c.Int("repeat"), Warmup: c.Bool("warmup")}
	if options.Device != "mps" && options.Device != "cpu" {
		return options, usagef("there is no --device %s%s", options.Device, suggest.Names(options.Device, []string{"mps", "cpu"}))
	}
	if options.Repeat < 0 || options.Repeat == 0 && c.IsSet("repeat") {
		return options, usagef("--repeat %d: at least 1", options.Repeat)
	}
	for _, word := range list(c.String("threads")) {
		number, err := strconv.Atoi(word)
		if err != nil || number < 1 || number > 256 {
			return options, usagef("--threads %s: %q is not a number from 1 to 256", c.String("threads"), word)
		}
		options.Threads = append(options.Threads, number)
	}
	_, err := pytests.List(options.Only)
	return options, err
}

// listTests shows the Python parallel tests.
func (c call) listTests() (result, error) {
	tests, err := pytests.List(c.String("only"))
	if err != nil {
		return result{}, err
	}
	return result{value: tests, message: fmt.Sprintf("tests: %d", len(tests)), text: func(w io.Writer) {
		for _, t := range tests {
			line := fmt.Sprintf("%-24s %s; threads %s, quick %s", t.Name, t.About, numbers(t.Threads), numbers(t.Quick))
			if len(t.Needs) > 0 {
				line += "; needs " + strings.Join(t.Needs, ", ")
			}
			fmt.Fprintln(w, line)
		}
	}}, nil
}

// numbers writes thread counts, runs of them as a range.
func numbers(all []int) string {
	if n := len(all); n > 2 && all[n-1]-all[0] == n-1 {
		return fmt.Sprintf("%d to %d", all[0], all[n-1])
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", ",")
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// verifyOptions reads the flags of verify and checks all that can be checked before any work.
func (c call) verifyOptions(ctx context.Context) (options stage.Options, err error) {
	stages, required := list(c.String("stages")), list(c.String("require"))
	if err := validate.CheckNames(append(append([]string{}, stages...), required...)); err != nil {
		return options, err
	}
	if c.fromFile["stages"] != "" { // what is required by the command line runs whatever the file says
		for _, name := range required {
			if !slices.Contains(stages, name) {
				stages = append(stages, name)
			}
		}
	}
	if err := c.checkRead(stages); err != nil {
		return options, err
	}
	cache, err := openCache()
	writes := slices.ContainsFunc([]stage.Need{stage.NeedsCache, stage.NeedsRoot, stage.NeedsTorch}, func(need stage.Need) bool {
		return validate.Need(stages, need)
	})
	if err != nil && (cache == "" || writes) {
		return options, err
	}
	options = stage.Options{Stages: stages, Require: required, Quick: c.Bool("quick"), KeepGoing: c.Bool("keep-going"), Seed: c.Uint64("seed"), Cache: cache,
		Tool: reports.Tool{Name: "mpsforge", Version: version(), Commit: commit()}}
	options.Host = stage.HostOptions{Root: c.String("root"), Torch: c.String("torch"), Jobs: c.Int("jobs"), Ablate: list(c.String("ablate")),
		Scenarios: list(c.String("scenarios"))}
	if err := runtimestage.CheckScenarios(options.Host.Scenarios); err != nil {
		return options, usagef("--scenarios: %v", err)
	}
	if text := c.String("shard"); text != "" {
		if options.Shard, err = stage.ParseShard(text); err != nil {
			return options, usagef("--shard: %v", err)
		}
		if err := validate.CheckShard(options); err != nil {
			return options, usagef("--shard: %v", err)
		}
	}
	options.Upstream = stage.UpstreamOptions{Tests: c.String("tests")}
	if _, err := regexp.Compile(options.Upstream.Tests); err != nil {
		return options, usagef("--tests: %v", err)
	}
	options.OneThread = stage.OneThreadOptions{Programs: c.String("programs")}
	if _, err := regexp.Compile(options.OneThread.Programs); err != nil {
		return options, usagef("--programs: %v", err)
	}
	if options.Host.Flavours, err = flavours(list(c.String("flavours"))); err != nil {
		return options, err
	}
	if options.Python, err = c.pythonOptions(); err != nil {
		return options, err
	}
	options.Operators = stage.OperatorOptions{Names: list(c.String("operators")), Forms: list(c.String("form")), DTypes: list(c.String("dtype"))}
	if err := operators.CheckOptions(options.Operators); err != nil {
		return options, usagef("%v", err)
	}
	if err := c.checkPrograms("python", "stock"); err != nil {
		return options, err
	}
	if validate.Need(stages, stage.NeedsTorch) {
		if err := c.checkTorch(ctx, "python", "stock"); err != nil {
			return options, err
		}
	}
	if path := c.String("report"); path != "" && path != "-" {
		if err := reports.TryFiles(path); err != nil {
			return options, fmt.Errorf("--report %s: %w", path, err)
		}
	}
	return options, nil
}

// checkRead refuses flags of the command line that none of the named stages reads.
func (c call) checkRead(stages []string) error {
	for _, flag := range verifyFlags() {
		name, readers := flag.Names()[0], readersOf(flag)
		byHand := c.IsSet(name) && c.fromFile[name] == "" && c.chosen[name] == "" && source(c.Context, name) == "--"+name
		if byHand && len(stages) > 0 && len(readers) > 0 && !slices.ContainsFunc(stages, func(s string) bool { return slices.Contains(readers, s) }) {
			return usagef("--%s is for %s, and --stages %s names none of them", name, strings.Join(readers, ", "), strings.Join(stages, ","))
		}
	}
	return nil
}

// readersOf are the stages that the title of a flag's group names; none if it is for all.
func readersOf(flag cli.Flag) []string {
	grouped, is := flag.(cli.CategorizableFlag)
	if !is {
		return nil
	}
	if word, names, _ := strings.Cut(grouped.GetCategory(), " "); word == "Stage" || word == "Stages" {
		return list(names)
	}
	return nil
}

// checkTorch refuses a flag that names a Python without torch.
func (c call) checkTorch(ctx context.Context, flags ...string) error {
	for _, flag := range flags {
		python := c.String(flag)
		if python == "" {
			continue
		}
		if err := pytests.CheckTorch(ctx, python); err != nil {
			use := "the one that mpsforge build --host prints; verify uses it by default"
			switch {
			case flag == "stock":
				use = "one with an unpatched torch of the baseline's version"
			case runtime.GOOS == "darwin":
				use = filepath.Join(build.DefaultVenv(cmp.Or(c.String("checkout"), "CHECKOUT")), "bin", "python3") + ", which mpsforge build makes"
			}
			return fmt.Errorf("--%s: %w; use %s", flag, err, use)
		}
	}
	return nil
}

// checkPrograms refuses a flag that names a program which cannot be started.
func (c call) checkPrograms(flags ...string) error {
	for _, flag := range flags {
		if name := c.String(flag); name != "" {
			if _, err := exec.LookPath(name); err != nil {
				if failed := (*exec.Error)(nil); errors.As(err, &failed) {
					err = failed.Err
				}
				return usagef("--%s %s: %v; name a program that can be started", flag, name, err)
			}
		}
	}
	return nil
}

// verify runs the pipeline, writes the report and gives it.
func (c call) verify(ctx context.Context) (result, error) {
	if c.Bool("list") {
		return c.listTests()
	}
	if c.Bool("last-failed") {
		from, err := c.lastFailed()
		if err != nil {
			return result{}, err
		}
		if len(c.chosen) == 0 {
			message := "nothing failed in the last run, " + from
			return result{message: message, text: func(w io.Writer) { fmt.Fprintln(w, message) }}, nil
		}
	}
	debug.SetGCPercent(100) // long and hungry, unlike the other commands: back to Go's default
	options, err := c.verifyOptions(ctx)
	if err != nil {
		return result{}, err
	}
	closeCheckout, err := c.verified(ctx, &options)
	defer closeCheckout()
	if err != nil {
		return result{}, err
	}
	path := c.String("report")
	if path == "" || path == "-" {
		dir, err := reportsDir()
		if err != nil {
			return result{}, err
		}
		path = filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000Z")+"-"+options.Series.Baseline.Name+".json")
		if err := reports.TryFiles(path); err != nil {
			return result{}, fmt.Errorf("the report in the cache: %v; name another FILE with --report", err) // no wrong use
		}
	}
	options.Artifacts = strings.TrimSuffix(path, ".json") + ".artifacts"
	options.Write = func(report *reports.Report) error {
		report.Command, report.Settings, report.Choices = c.again(report.Seed), c.fromFile, c.choices()
		return report.WriteFiles(path)
	}
	report, failed := validate.Run(ctx, options, c.sink)
	if report == nil {
		return result{}, failed
	}
	if c.String("report") != "" && failed == nil {
		noteReport(path)
	}
	found, err := c.verdict(report, path)
	if failed != nil {
		code := exitFailed
		if err != nil {
			code = exitCode(err)
		}
		found.report, found.next = "", ""
		found.text = func(w io.Writer) { _ = report.WriteSummary(w, c.std.colours(), c.std.width()) }
		return found, silentError{code, fmt.Sprintf("%s, but there is no report: %v\nthe same command with another --report goes on from what was kept",
			report.Verification(), failed)}
	}
	if c.String("report") == "-" {
		found.text = func(w io.Writer) { _ = report.WriteJSON(w) } // execute says what did not arrive
	}
	return found, err
}

// verified puts into the options what is verified: the checkout, if there is one, and the series. The function
// that it returns closes the checkout, and is there with an error, too.
func (c call) verified(ctx context.Context, options *validate.Options) (closeCheckout func() error, err error) {
	closeCheckout = func() error { return nil }
	checkout, series, err := c.openCheckout(ctx)
	switch {
	case err == nil:
		closeCheckout = checkout.Close
		status, err := checkout.Status(ctx, series)
		if err != nil {
			return closeCheckout, err
		}
		options.Checkout = checkout
		options.Series, _ = series.Applied(status.Applied()) // a part by itself is a series to verify
	case errors.Is(err, errNoCheckout):
		options.NoCheckout = fmt.Sprintf("there is no checkout at %s; mpsforge fetch gets one", c.String("checkout"))
		if options.Series, err = c.series(""); err != nil {
			return closeCheckout, err
		}
	default:
		return closeCheckout, err
	}
	if _, err := options.Series.Named(options.Host.Ablate); err != nil {
		return closeCheckout, usagef("--ablate: %v", err)
	}
	files, err := c.seriesFiles()
	if err != nil {
		return closeCheckout, err
	}
	if options.Lint, err = patches.Lint(files, options.Series.Baseline.Name, validate.ScenarioNames()); err != nil {
		return closeCheckout, err
	}
	recorded, err := patches.ReadCoverage(files, options.Series.Baseline.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return closeCheckout, fmt.Errorf("read the coverage of %s: %w", options.Series.Baseline.Name, err)
	}
	options.Coverage = &recorded
	return closeCheckout, nil
}

// verdict is what the command says of a report that it has written, and its exit code.
func (c call) verdict(report *reports.Report, path string) (result, error) {
	page, err := filepath.Abs(reports.PathOf(path, "html"))
	if err != nil {
		return result{}, fmt.Errorf("the report's page: %w", err)
	}
	message := fmt.Sprintf("%s; report: %s", report.Verification(), path)
	found := result{value: report, message: message, report: page, text: func(w io.Writer) {
		_ = report.WriteSummary(w, c.std.colours(), c.std.width()) // execute says what did not arrive
		fmt.Fprintf(w, "\nall of it: %s, or as a page: %s\n", fullReport(path), reports.PathOf(path, "html"))
	}}
	switch report.Verdict {
	case reports.Failed:
		found.next = c.onCheckout("verify --last-failed")
		if c.IsSet("report") {
			found.next += " --report " + path
		}
		return found, silentError{exitVerify, fmt.Sprintf("%s; see %s", report.Verification(), reports.PathOf(path, "html"))}
	case reports.Skipped:
		if report.Shard != nil && len(report.Missing) == 0 { // this part is done; its report does not count as a pass
			found.next = "mpsforge report merge SHARD.json..., once all shards are there"
			return found, nil
		}
		return found, silentError{exitEnvironment, fmt.Sprintf("%s\nrequired stages did not run: %s\nmpsforge doctor shows what this machine lacks",
			report.Verification(), report.WhyMissing())}
	case reports.NotRun:
		return found, silentError{exitEnvironment, "no stage ran; mpsforge doctor shows what is missing"}
	case reports.Passed:
		if checkout := report.Stage("checkout"); checkout != nil && checkout.Verdict == reports.Passed {
			found.next = c.onCheckout(map[bool]string{true: "build", false: "overlay build --platform macos"}[runtime.GOOS == "darwin"])
		}
	}
	return found, nil
}

// choices are the flags that make stages run something else than their form.
func (c call) choices() map[string]string {
	chosen := map[string]string{}
	for _, flag := range append(choiceFlags(), &cli.StringFlag{Name: "shard"}) {
		if name := flag.Names()[0]; c.IsSet(name) {
			chosen[name] = fmt.Sprint(c.Value(name))
		}
	}
	return chosen
}

// again is the command line that runs the same with the same random choices.
func (c call) again(seed uint64) string {
	args := slices.DeleteFunc(slices.Clone(c.std.args[1:]), func(arg string) bool { return arg == "--last-failed" })
	for _, name := range slices.Sorted(maps.Keys(c.fromFile)) {
		args = append(args, "--"+name, c.fromFile[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.chosen)) {
		args = append(args, "--"+name+"="+c.chosen[name])
	}
	if !c.IsSet("seed") {
		args = append(args, "--seed", fmt.Sprint(seed))
	}
	return withoutPasswords(run.Command{Name: "mpsforge", Args: args}.String())
}
