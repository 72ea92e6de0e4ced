package fork_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mpsforge/fork"
	"mpsforge/internal/gittest"
	"mpsforge/internal/require"
)

// TestTwoFetchesIntoOneFolder runs two fetches into a folder that is not there yet, at moments apart by up to the time that one takes.
// One ends well, and the other finds its checkout or is refused: neither removes what the other makes. Some of the second ones have
// the wrong files, and clean up.
func TestTwoFetchesIntoOneFolder(t *testing.T) {
	r := repo{gittest.New(t)}
	r.Write("greeting", "hello\n")
	series := r.series(r.Commit("base"))
	series.Baseline.Tree = r.Git("rev-parse", "HEAD^{tree}")
	r.Git("archive", "--prefix=right/", "-o", "right.tar", "HEAD")
	r.Write("greeting", "goodbye\n")
	r.Git("archive", "--prefix=wrong/", "-o", "wrong.tar", r.Commit("wrong"))
	fetch := func(dir, from string) error {
		_, err := fork.Fetch(t.Context(), series, fork.FetchOptions{Dir: dir, From: r.Path(from)}, nil)
		return err
	}
	started := time.Now()
	require.NoError(t, fetch(filepath.Join(t.TempDir(), "alone"), "right.tar"))
	took := time.Since(started)
	random := rand.New(rand.NewPCG(1, 25))
	rounds := 60
	if testing.Short() {
		rounds = 12
	}
	for round := range rounds {
		dir := filepath.Join(t.TempDir(), "checkout")
		from := [2]string{"right.tar", []string{"right.tar", "wrong.tar"}[round%2]}
		wait := [2]time.Duration{0, time.Duration(random.Int64N(int64(took) + 1))}
		if round%3 == 0 {
			wait[0], wait[1] = wait[1], wait[0]
		}
		if round%4 < 2 {
			wait = [2]time.Duration{}
		}
		var errs [2]error
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				time.Sleep(wait[i])
				errs[i] = fetch(dir, from[i])
			})
		}
		all.Wait()
		for i, err := range errs {
			if err != nil && !strings.Contains(err.Error(), "another mpsforge") && !(from[i] == "wrong.tar" && errors.Is(err, fork.ErrWrongBaseline)) {
				t.Errorf("round %d, after %v: %s: %v", round, wait, from[i], err)
			}
		}
		if errs[0] != nil && errs[1] != nil {
			if !errors.Is(errs[1], fork.ErrWrongBaseline) {
				t.Errorf("round %d, after %v: both fail: %v; %v", round, wait, errs[0], errs[1])
			}
			if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 { // an empty one was made by the one that was refused
				t.Errorf("round %d, after %v: they leave %v", round, wait, entries)
			}
			continue
		}
		if text, err := os.ReadFile(filepath.Join(dir, "greeting")); err != nil || string(text) != "hello\n" {
			t.Errorf("round %d, after %v: the checkout holds %q, %v", round, wait, text, err)
		}
	}
}
