package stage

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/reports"
)

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{"2/8": {2, 8}, "1/1": {1, 1}, "256/256": {256, 256}} {
		if got, err := ParseShard(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "2", "0/8", "9/8", "-1/8", "1/0", "2/8x", "2/8 ", "02/8", "1/257", "two/8"} {
		if got, err := ParseShard(text); !errors.Is(err, ErrShard) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Split says how many of the jobs a shard has, and of which list: the same digest in whatever order they come. A shard without any
// has no verdict.
func TestSplitCounts(t *testing.T) {
	var jobs []string
	for i := range 40 {
		jobs = append(jobs, fmt.Sprint("job ", i))
	}
	sum := 0
	var first reports.Stage
	for i := range 4 {
		var report reports.Stage
		require.NoError(t, (Shard{i + 1, 4}).Split(&report, jobs))
		slices.Reverse(jobs)
		if i == 0 {
			first = report
		}
		sum += report.Part.Jobs
		if report.Part.Of != 40 || report.Part.Digest != first.Part.Digest {
			t.Errorf("%+v", report.Part)
		}
	}
	if sum != 40 {
		t.Errorf("the shards have %d of 40 jobs", sum)
	}
	var other, whole, empty reports.Stage
	if err := (Shard{1, 4}).Split(&other, append(slices.Clone(jobs[1:]), "another")); err != nil || other.Part.Digest == first.Part.Digest {
		t.Errorf("another list of jobs has the same digest: %v", err)
	}
	if err := (Shard{}).Split(&whole, jobs); err != nil || whole.Part != nil {
		t.Errorf("a whole run is said to be a part: %v", err)
	}
	one := Shard{1, 2}
	if one.Has("job") {
		one.Index = 2
	}
	if _, skipped := SkipReason(one.Split(&empty, []string{"job"})); !skipped || empty.Part.Of != 1 || empty.Part.Jobs != 0 {
		t.Errorf("a shard without jobs: %+v", empty.Part)
	}
}

// What is drawn by all shards together is at least what a whole run draws.
func TestShareIsEnough(t *testing.T) {
	for of := 1; of <= 9; of++ {
		if (Shard{1, of}).Share(60)*of < 60 {
			t.Errorf("%d shards draw too few", of)
		}
	}
	require.Equal(t, (Shard{}).Share(60), 60, "a whole run draws all")
}
