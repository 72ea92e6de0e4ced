package patches

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/internal/require"
)

// mutantsFixture is a series whose first patch adds lines, which the second moves, and of which the third removes one.
func mutantsFixture(t *testing.T) (*Series, map[string]string) {
	t.Helper()
	old := []string{"int f() {", "  return 0;", "}"}
	first := []string{"int f() {", "  std::lock_guard<std::mutex> lock(mutex);", "  count = 1;", "  if (done) {", "    gone();", "  }", "  return 0;", "}"}
	second := append([]string{"// more", "// and more"}, first...)
	third := slices.Concat(second[:6], []string{"  }", "  stream.waitForAll();"}, second[8:])
	text := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	fsys := fixture(map[string]string{"a.mm": text(old)}, "locks", good(changed("a.mm", text(old), text(first))))
	fsys["v1.0.0/"+seriesFile] = &fstest.MapFile{Data: []byte("locks.patch\ncomments.patch\nwaits.patch\n")}
	fsys["v1.0.0/comments.patch"] = &fstest.MapFile{Data: []byte(good(changed("a.mm", text(first), text(second))))}
	fsys["v1.0.0/waits.patch"] = &fstest.MapFile{Data: []byte(good(changed("a.mm", text(second), text(third))))}
	series := require.One(Load(fsys, "v1.0.0"))(t)
	return series, map[string]string{"a.mm": text(third)}
}

// Each kind of fault, and what is none: declarations, comments, text in quotes, parts of statements.
func TestKindsOfMutants(t *testing.T) {
	for _, c := range []struct{ line, kind, want string }{
		{"  std::lock_guard<std::mutex> lock(m_mutex);", "lock left out", "  ;"},
		{"  std::unique_lock<std::mutex> lock(part.mutex);", "lock left out", "  std::unique_lock<std::mutex> lock(part.mutex, std::defer_lock);"},
		{"std::unique_lock<std::mutex> lockEncode(SerialEncode what);", "", ""},
		{"  guards.store(1, std::memory_order_release);", "order weakened", "  guards.store(1, std::memory_order_relaxed);"},
		{"  return state.enqueued.load();", "order weakened", "  return state.enqueued.load(std::memory_order_relaxed);"},
		{"  if (!fenced.exchange(true)) {", "order weakened", "  if (!fenced.exchange(true, std::memory_order_relaxed)) {"},
		{"  return a < b;", "comparison turned", "  return a >= b;"},
		{`  log("a < b");`, "statement left out", "  ;"},
		{"  [buffer waitUntilCompleted];", "wait skipped", "  ;"},
		{"  if (thread.lease && !done) {", "condition turned", "  if (!(thread.lease && !done)) {"},
		{"  if (auto n = read(); n) {", "", ""},
		{"  slots().release(*lease);", "statement left out", "  ;"},
		{"  MPSStream* stream = current();", "", ""},
		{"  return stream;", "", ""},
	} {
		var kinds []string
		for _, m := range mutations() {
			if got := m.change(c.line, false); got != "" {
				kinds = append(kinds, m.kind)
				if m.kind == c.kind && got != c.want {
					t.Errorf("%q became %q, want %q", c.line, got, c.want)
				}
			}
		}
		if c.kind == "" && len(kinds) > 0 || c.kind != "" && !slices.Contains(kinds, c.kind) {
			t.Errorf("%q: %q, want %q", c.line, kinds, c.kind)
		}
	}
	for line, want := range map[string]string{"    if stream is None:": "    if not (stream is None):", "        event.wait(self)": "        pass",
		"        return stream": ""} {
		got := ""
		for _, m := range mutations() {
			if changed := m.change(line, true); changed != "" {
				got = changed
			}
		}
		require.Equal(t, got, want, "Python", line)
	}
}

// Mutants are of lines that the patches add and that are still there at the end, at their line then.
func TestMutantsAreOfThePatchedTree(t *testing.T) {
	series, tree := mutantsFixture(t)
	drawn := DrawMutants(series, 1, 100)
	lines := strings.Split(tree["a.mm"], "\n")
	patches := map[string]int{}
	for _, m := range drawn.Mutants {
		patches[m.Patch]++
		if lines[m.Line-1] != m.Old {
			t.Errorf("line %d is %q, the mutant is of %q", m.Line, lines[m.Line-1], m.Old)
		}
		if strings.Contains(m.Old, "gone") {
			t.Errorf("%+v is of a line that a later patch removes", m)
		}
	}
	if patches["locks"] != 3 || patches["waits"] != 1 {
		t.Errorf("%v", patches)
	}
}

// The same seed gives the same mutants, and a larger number gives more; another seed gives others.
func TestDrawIsFixedByItsSeed(t *testing.T) {
	series := require.One(Load(Embedded(), DefaultBaseline))(t)
	draw := func(seed uint64, count int) []Mutant {
		drawn := DrawMutants(series, seed, count)
		if len(drawn.Mutants) != count {
			t.Fatal(len(drawn.Mutants))
		}
		return drawn.Mutants
	}
	forty := draw(41, 40)
	if !slices.Equal(forty, draw(41, 100)[:40]) || slices.Equal(forty, draw(42, 40)) {
		t.Error("the draw does not depend on its seed alone")
	}
	counts := map[string]int{}
	for _, m := range forty {
		counts[m.Patch]++
	}
	even := (len(forty) + len(series.Patches) - 1) / len(series.Patches)
	for patch, n := range counts {
		if n > even {
			t.Errorf("%s has %d of forty mutants", patch, n)
		}
	}
}

// What is recorded of a series as it is was drawn from it, by the seed that it names.
func TestRecordedMutantsWereDrawn(t *testing.T) {
	names := require.One(Baselines(Embedded()))(t)
	for _, name := range names {
		recorded, err := ReadMutants(Embedded(), name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		series := require.One(Load(Embedded(), name))(t)
		if recorded.SeriesDigest != series.Digest() {
			continue // lint warns
		}
		drawn := DrawMutants(series, recorded.Seed, len(recorded.Mutants))
		if !slices.EqualFunc(drawn.Mutants, recorded.Mutants, func(a, b Mutant) bool { return a.Same(b) && a.Line == b.Line }) {
			t.Errorf("%s: mutants.json is not what seed %d draws", name, recorded.Seed)
		}
	}
}

// What is known of a mutant stays when lines above it move, and is not taken for that of another line with its text.
func TestMutantIsTheSameWhereverItsLineIs(t *testing.T) {
	one := Mutant{Patch: "streams", Path: "a.mm", Line: 3, Nth: 1, Kind: kindLock, Old: "  lock();", New: "  ;"}
	moved, other := one, one
	moved.Name, moved.Line = "m02", 5
	other.Nth = 2
	if !one.Same(moved) || one.Same(other) {
		t.Errorf("the same when moved: %t, and as the second of that text: %t", one.Same(moved), one.Same(other))
	}
}

// A mutant is planted as one patch more, which changes its line alone.
func TestPlantedMutantChangesOneLine(t *testing.T) {
	series, tree := mutantsFixture(t)
	drawn := DrawMutants(series, 1, 100)
	read := func(path string) ([]byte, error) { return []byte(tree[path]), nil }
	for _, m := range drawn.Mutants {
		planted := require.One(m.Plant(series, read))(t)
		if len(planted.Patches) != 4 || len(series.Patches) != 3 || planted.Digest() == series.Digest() {
			t.Fatalf("%d patches", len(planted.Patches))
		}
		got := require.One(planted.Patches[3].Files[0].Apply([]byte(tree["a.mm"])))(t)
		require.Equal(t, string(got), strings.Replace(tree["a.mm"], m.Old+"\n", m.New+"\n", 1))
	}
	stale := drawn.Mutants[0]
	stale.Line++
	if _, err := stale.Plant(series, read); !errors.Is(err, ErrMutants) || !strings.Contains(err.Error(), "is not what was drawn") {
		t.Errorf("%v", err)
	}
}

// lint warns of mutants of another series, of those that were never judged, and of survivors that nobody has explained.
func TestLintMutants(t *testing.T) {
	fsys, series := onePatch(t)
	judged := func(v MutantVerdict) *Judgement { return &Judgement{Verdict: v, SeriesDigest: series.Digest()} }
	for name, c := range map[string]struct {
		digest string
		mutant Mutant
		finds  string
	}{
		"found":               {series.Digest(), Mutant{Name: "m01", Judged: judged(MutantFound)}, ""},
		"does not compile":    {series.Digest(), Mutant{Name: "m01", Judged: judged(MutantNotCompiled)}, ""},
		"survived, explained": {series.Digest(), Mutant{Name: "m01", Judged: judged(MutantSurvived), Reading: "no fault"}, ""},
		"survived": {series.Digest(), Mutant{Name: "m01", Judged: judged(MutantSurvived)},
			"nothing finds these mutants, and nobody has said why: m01"},
		"not judged":     {series.Digest(), Mutant{Name: "m01"}, "these mutants were never judged: m01"},
		"another series": {"old", Mutant{Name: "m01"}, "the series has changed since the mutants were drawn"},
		"judged before the series changed": {series.Digest(), Mutant{Name: "m01", Judged: &Judgement{Verdict: MutantFound, SeriesDigest: "old"}},
			"the series has changed since these mutants were judged: m01"},
	} {
		t.Run(name, func(t *testing.T) {
			record(fsys, MutantsFile, Mutants{Schema: 1, Tag: "v1.0.0", SeriesDigest: c.digest, Seed: 1, Mutants: []Mutant{c.mutant}})
			found := require.One(LintMutants(fsys, "v1.0.0"))(t)
			wantFinding(t, found.Findings, SeverityWarning, c.finds)
		})
	}
}
