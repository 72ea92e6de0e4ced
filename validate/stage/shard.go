package stage

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/reports"
)

// Shard is one of several parts that a run is divided into, each run apart; the zero value is the whole run.
type Shard struct{ Index, Of int }

// ErrShard is returned, wrapped, for text that names no shard.
var ErrShard = errors.New("not a shard")

// ErrDivided is returned, wrapped, for options that a run by shards cannot have.
var ErrDivided = errors.New("the run cannot be divided")

// mostShards is a bound against typing errors.
const mostShards = 256

// ParseShard reads INDEX/OF, such as 2/8.
func ParseShard(text string) (Shard, error) {
	var s Shard
	var rest string
	if count, _ := fmt.Sscanf(text+" ", "%d/%d%s", &s.Index, &s.Of, &rest); count != 2 || text != s.String() {
		return Shard{}, fmt.Errorf("%w: %q; write it as 2/8, the second of eight", ErrShard, text)
	}
	if s.Of < 1 || s.Of > mostShards || s.Index < 1 || s.Index > s.Of {
		return Shard{}, fmt.Errorf("%w: %q; the first number is from 1 to the second, which is at most %d", ErrShard, text, mostShards)
	}
	return s, nil
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Whole says that the run is not divided.
func (s Shard) Whole() bool { return s.Of == 0 }

// Owner is the index of the shard that has the job with this name. It depends on the name alone, so that a job that is added or
// goes away moves no other.
func (s Shard) Owner(job string) int {
	if s.Whole() {
		return 0
	}
	sum := sha256.Sum256([]byte(job))
	return 1 + int(binary.BigEndian.Uint64(sum[:])%uint64(s.Of))
}

// Has says whether this shard has the job with this name; a whole run has every job.
func (s Shard) Has(job string) bool { return s.Owner(job) == s.Index }

// Share is this shard's part of a number of jobs that are drawn: the shards together draw at least so many.
func (s Shard) Share(count int) int {
	if s.Whole() {
		return count
	}
	return (count + s.Of - 1) / s.Of
}

// Deferred is the check that replaces, in this shard's report, a job of another shard that judges the whole.
func (s Shard) Deferred(job, subject string) reports.Check {
	owner := Shard{s.Owner(job), s.Of}
	return reports.Check{Name: job, Subject: subject, Verdict: reports.Skipped, Shard: owner.Index, Detail: fmt.Sprintf("shard %s judges it", owner)}
}

// Split writes into the report which part of a stage's jobs this shard has, given the names of all; report merge counts on it. A
// shard that has none of them has nothing to judge: the error says so. In a whole run it does nothing.
func (s Shard) Split(report *reports.Stage, jobs []string) error {
	if s.Whole() {
		return nil
	}
	names := slices.Sorted(slices.Values(jobs))
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	report.Part = &reports.Part{Of: len(names), Digest: hex.EncodeToString(sum[:])}
	for _, name := range names {
		if s.Has(name) {
			report.Part.Jobs++
		}
	}
	if report.Part.Jobs == 0 {
		return Skipf("none of the stage's %d jobs is in shard %s", len(names), s)
	}
	return nil
}
