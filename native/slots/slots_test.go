//go:build cgo

package slots

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

func reference(t *testing.T) *Subject {
	t.Helper()
	return require.One(Reference())(t)
}

func TestReferenceLeasesAndReleases(t *testing.T) {
	slots := require.One(reference(t).New(Config{WorkerSlots: 2, Policy: Share, WaitMS: -1}))(t)
	defer slots.Close()
	first, second, third := slots.Acquire(), slots.Acquire(), slots.Acquire()
	require.Equal(t, first, (Result{Outcome: Leased, Slot: 0, Generation: 1}), "first")
	require.Equal(t, second, (Result{Outcome: Leased, Slot: 1, Generation: 1}), "second")
	require.Equal(t, third, (Result{Outcome: Shared, FirstShare: true}), "third")
	if !slots.Release(0, 1) || slots.Release(0, 1) {
		t.Error("a lease must be released exactly once")
	}
	want := Statistics{Live: 1, Peak: 2, Leases: 2, Shares: 1, Refused: 1}
	require.Equal(t, slots.Statistics(), want, "statistics")
	require.Contains(t, slots.ShareWarning(), "PYTORCH_MPS_STREAM_POOL_SIZE", "share warning does not name the variable")
}

func TestNewRefusesBadConfig(t *testing.T) {
	for _, config := range []Config{{WorkerSlots: 0}, {WorkerSlots: MaxWorkerSlots + 1}, {WorkerSlots: 1, Policy: 3}} {
		if _, err := reference(t).New(config); !errors.Is(err, ErrConfig) {
			t.Errorf("New(%+v) = %v, want ErrConfig", config, err)
		}
	}
}

func TestParseReturnsOneWarningPerVariable(t *testing.T) {
	bad := "x\ny" // a line break in a value must not make two warnings of one
	config, warnings := reference(t).Parse(nil, &bad)
	if want := (Config{WorkerSlots: 31, WaitMS: -1}); config != want || len(warnings) != 1 {
		t.Errorf("Parse = %+v, %q; want %+v and one warning", config, warnings, want)
	}
}

func TestRunHistoryRecordsEveryOperation(t *testing.T) {
	options := HistoryOptions{
		Config: Config{WorkerSlots: 3, Policy: Wait, WaitMS: -1}, Seed: 7,
		Threads: 4, Operations: 500, MaxHeld: 1, StalePercent: 20, HoldYields: 2, StallMS: 300_000,
	}
	history := require.One(reference(t).RunHistory(options))(t)
	if history.Stuck != "" || history.Overlaps != 0 || history.Torn != 0 {
		t.Fatalf("stuck %q, overlaps %d, torn statistics %d", history.Stuck, history.Overlaps, history.Torn)
	}
	var leases, refused uint64
	for _, record := range history.Records {
		if record.End < record.Start {
			t.Fatalf("ends before it starts: %+v", record)
		}
		switch {
		case record.Kind == Acquire:
			leases++
		case !record.Accepted:
			refused++
		}
	}
	if least := 4 * 500; len(history.Records) < least {
		t.Errorf("%d records, want at least %d", len(history.Records), least)
	}
	if s := history.Statistics; s.Leases != leases || s.Refused != refused || refused == 0 || s.Live != 0 {
		t.Errorf("statistics %+v, recorded %d leases and %d refusals", s, leases, refused)
	}
}

// A thread that waits for its own second lease never returns: the watchdog must end the run and name it.
func TestRunHistoryReportsAStall(t *testing.T) {
	history, err := reference(t).RunHistory(HistoryOptions{
		Config:  Config{WorkerSlots: 1, Policy: Wait, WaitMS: -1},
		Threads: 1, Operations: 1000, MaxHeld: 2, StallMS: 2000, // long enough for the thread to get there
	})
	require.NoError(t, err)
	require.Contains(t, history.Stuck, "thread 0 in acquire", "Stuck")
}

func TestRunHistoryRefusesNoThreads(t *testing.T) {
	_, err := reference(t).RunHistory(HistoryOptions{Config: Config{WorkerSlots: 1}})
	require.Is(t, err, ErrConfig)
}

func TestLoadRefusesWhatIsNoSubject(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no.so")
	require.NoError(t, os.WriteFile(path, []byte("not a library"), 0o600))
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Load = %v, want an error that names the file", err)
	}
}
