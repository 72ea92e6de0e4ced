package upstream

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/kept"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

// runner is one run of the stage.
type runner struct {
	env            *stage.Env
	report         *reports.Stage
	scripts        string // folder with suite.py
	patched, stock *pytests.Subject
	limits         limits
	facts          patches.UpstreamFacts
	listed         listed
	operators      map[string]bool // that have a kernel for MPS on a Mac
	pattern        *regexp.Regexp

	mutex sync.Mutex // guards done
	done  int64
	jobs  []string // names of all tests that this run is of, those of other shards, too
	all   []*test
	names map[string]bool // of all tests that the files have
}

// test is one test of PyTorch's and how it ended, first and in the runs after that.
type test struct {
	file, name     string
	stock, patched []end
	last           ended // on patched, or on stock where there is no other
	seconds        float64
	pointed        bool // at mps, by stand-ins: it was written for another device
}

// id is how the test is named to a user and in upstream.json.
func (t *test) id() string { return t.file + ":" + t.name }

// side is one subject in a run of a file.
type side struct {
	subject *pytests.Subject
	suite   *suite
	kept    *kept.Index[ended] // nil in the short form
	add     func(*test, end)   // puts an end to its subject's
}

// runFile runs a file's tests on both subjects, and those whose end is to be reported a second time.
func (r *runner) runFile(ctx context.Context, file suiteFile) (err error) {
	sides := []*side{{subject: r.patched, add: func(t *test, e end) { t.patched = append(t.patched, e) }}}
	if r.stock != nil {
		sides = append(sides, &side{subject: r.stock, add: func(t *test, e end) { t.stock = append(t.stock, e) }})
	}
	if err := each(sides, func(s *side) error { return r.open(ctx, s, file, max(1, runtime.NumCPU()/len(sides))) }); err != nil {
		closeAll(sides)
		return err
	}
	defer func() {
		if closing := closeAll(sides); err == nil {
			err = closing
		}
	}()
	first := sides[0].suite
	for _, s := range sides[1:] {
		if !slices.Equal(s.suite.Names, first.Names) {
			return fmt.Errorf(
				"%s has %d tests on %s and %d on %s: they must be the same; something that decides which tests exist differs between the two sides",
				file.path, len(first.Names), sides[0].subject.Name, len(s.suite.Names), s.subject.Name)
		}
	}
	chosen := r.choose(file, first.Names)
	for _, name := range chosen {
		r.jobs = append(r.jobs, file.name+":"+name)
	}
	chosen = slices.DeleteFunc(chosen, func(name string) bool { return !r.env.Shard.Has(file.name + ":" + name) })
	r.about(file, first, len(chosen))
	tests := map[string]*test{}
	for _, name := range chosen {
		tests[name] = &test{file: file.name, name: name, pointed: file.standins != nil}
		r.all = append(r.all, tests[name])
	}
	total := r.done + int64(len(chosen)*len(sides))
	if err := each(sides, func(s *side) error { return r.round(s, file, tests, chosen, total) }); err != nil {
		return err
	}
	again := slices.DeleteFunc(chosen, func(name string) bool { return !r.doubtful(tests[name]) })
	r.report.Count("tests run again", int64(len(again)))
	for _, s := range sides {
		if s.kept != nil {
			clear(s.kept.Left) // a second run is a run
		}
	}
	total += int64(len(again) * len(sides))
	return each(sides, func(s *side) error { return r.round(s, file, tests, again, total) })
}

// about says of a file which of its tests run.
func (r *runner) about(file suiteFile, s *suite, chosen int) {
	if r.names == nil {
		r.names = map[string]bool{}
	}
	for _, name := range s.Names {
		r.names[file.name+":"+name] = true
	}
	value := fmt.Sprintf("%d tests", len(s.Names))
	if s.MacOS != "" {
		value += ", run as on macOS " + s.MacOS
	}
	if file.about != nil {
		value += fmt.Sprintf(", pointed at device mps by %s", strings.Join(file.standins, " and "))
	}
	r.fact(file.name, fmt.Sprintf("%s; run: %d", value, chosen))
}

// open starts the process of one side, and opens the results that a longer run before this one has kept.
func (r *runner) open(ctx context.Context, s *side, file suiteFile, jobs int) (err error) {
	// PyTorch's CI runs what it calls slow, too, in jobs of their own.
	if s.suite, err = openSuite(ctx, s.subject, r.scripts, file, jobs, r.limits, []string{"CI=", "PYTORCH_TEST_WITH_SLOW=1"}); err != nil {
		return err
	}
	if r.env.Quick || r.env.Upstream.Tests != "" {
		return nil
	}
	paths := []string{file.path}
	for _, name := range append([]string{"suite", "standins", "forked", "unittests"}, file.standins...) {
		paths = append(paths, filepath.Join(r.scripts, name+".py"))
	}
	var depends []string
	for _, path := range paths {
		digest, err := builds.FileSHA256(path)
		if err != nil {
			return err
		}
		depends = append(depends, digest)
	}
	depends = append(depends, s.subject.Identity(), fmt.Sprint(file.standins, r.limits, s.suite.Names), s.suite.MacOS, fmt.Sprint(s.suite.Packages))
	s.kept, err = kept.OpenIndex(r.env.Kept, func(e ended) string { return e.Name }, depends...)
	if err == nil && len(s.kept.Left) > 0 {
		r.fact(s.subject.Name+": kept results", fmt.Sprintf("%d, from %s on; to run all again, delete %s", len(s.kept.Left),
			s.kept.Begun.Format("2006-01-02 15:04 MST"), s.kept.Folder))
	}
	return err
}

// round runs tests on one side.
func (r *runner) round(s *side, file suiteFile, tests map[string]*test, names []string, total int64) error {
	take := func(e ended) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		t := tests[e.Name]
		s.add(t, r.judge(t, e))
		t.seconds += e.Seconds
		if s.subject == r.patched {
			t.last = e
		}
		r.done++
		if s.kept != nil {
			r.env.Kept.Reached("tests", r.done, total)
		}
		r.env.Sink.Emit(events.StepProgress{Step: stage.StepName(r.report.Name), Done: r.done, Total: total, Unit: "tests", Note: s.subject.Name +
			", " + e.Name})
	}
	var missing []string
	for _, name := range names {
		if e, have := s.kept.Take(name); have {
			take(e)
		} else {
			missing = append(missing, name)
		}
	}
	return s.suite.run(missing, func(e ended) error {
		if tests[e.Name] == nil {
			return fmt.Errorf("%s reported a test that was not requested: %q", file.path, e.Name)
		}
		take(e)
		return s.kept.Add(e)
	})
}

// judge says what an end means, also by what upstream.json says of the test.
func (r *runner) judge(t *test, e ended) end {
	judged := judge(e, r.operators)
	if judged.kind == unexpectedSuccess && r.listed.successes[t.id()] != "" {
		return end{kind: passed}
	}
	return judged
}

// doubtful reports whether a test's first end would be reported: then it runs a second time, as it may be a flake.
func (r *runner) doubtful(t *test) bool {
	if r.stock != nil && t.stock[0] != t.patched[0] {
		return true
	}
	_, known := r.listed.failures[t.id()]
	return !r.listed.empty() && t.patched[0].expected() == known
}

func (r *runner) fact(name, value string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.report.Facts = append(r.report.Facts, reports.Fact{Name: name, Value: value})
}

// each does the same for all sides at once, and gives the first error.
func each(sides []*side, do func(*side) error) error {
	errs := make([]error, len(sides))
	var wait sync.WaitGroup
	for i, s := range sides {
		wait.Go(func() { errs[i] = do(s) })
	}
	wait.Wait()
	return cmp.Or(errs...)
}

// closeAll closes all suites, and gives the first error.
func closeAll(sides []*side) error {
	var errs []error
	for _, s := range sides {
		if s.suite != nil {
			errs = append(errs, s.suite.Close())
		}
	}
	return cmp.Or(errs...)
}
