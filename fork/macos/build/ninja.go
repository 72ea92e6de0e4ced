package build

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ninjaStatus is how ninja begins the line of each finished command (its manual, "Environment variables"): done, total,
// running. It is set, so that the user's own is not used.
const ninjaStatus = "[%f/%t/%r] "

var statusLine = regexp.MustCompile(`^\[(\d+)/(\d+)(?:/(\d+))?\] (.*)$`)

// ninjaLine is a status line of ninja's.
type ninjaLine struct {
	done, total, running int
	what                 string
}

// parseNinja reads a line of ninja's output; not ok is a command's own output. Without ninjaStatus, as in a dry run by
// hand, the line has two numbers.
func parseNinja(line string) (ninjaLine, bool) {
	match := statusLine.FindStringSubmatch(line)
	if match == nil {
		return ninjaLine{}, false
	}
	var n ninjaLine
	for i, into := range []*int{&n.done, &n.total, &n.running} {
		*into, _ = strconv.Atoi(match[i+1]) // the expression has matched digits, or nothing
	}
	n.what = match[4]
	return n, true
}

// durations reads how long each output took when it was last made, from ninja's log: start, end, both in milliseconds of
// its build, time stamp, output, hash of the command (version 5 to 7). No log is no knowledge.
func durations(path string) (map[string]time.Duration, error) {
	known := map[string]time.Duration{}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		fields := strings.Split(scanner.Text(), "\t")
		if len(fields) != 5 {
			continue // the first line, or one that a kill cut off
		}
		start, err1 := strconv.ParseInt(fields[0], 10, 64)
		end, err2 := strconv.ParseInt(fields[1], 10, 64)
		if err1 == nil && err2 == nil && 0 <= start && start <= end && end < mostLogged {
			known[fields[3]] = time.Duration(end-start) * time.Millisecond
		}
	}
	return known, scanner.Err()
}

// mostLogged is some thirty years, in milliseconds: a log that says more is damaged, and the time would not fit its type.
const mostLogged = 1 << 40

// outputOf is what the line of a command says it makes: cmake ends the descriptions of compilers and linkers with it.
func outputOf(what string) string {
	return what[strings.LastIndexByte(what, ' ')+1:]
}

// estimator says how long a build will still take. Each command weighs what ninja's log says that it took last time;
// one that is new weighs the mean of its kind (the end of its name), or of all. What a second of the clock gets done is
// measured as the build goes, so that the number of processors and what else runs on them need not be known.
type estimator struct {
	known   map[string]time.Duration
	kinds   map[string]mean
	all     mean
	pending float64 // seconds of work, of the commands that the dry run has named
	done    float64 // of those ended
	named   int
	ended   int
}

type mean struct {
	sum   float64
	count int
}

func (m mean) value() float64 { return m.sum / float64(m.count) }

func kindOf(output string) string {
	base := output[strings.LastIndexByte(output, '/')+1:]
	if i := strings.IndexByte(base, '.'); i >= 0 {
		return base[i:]
	}
	return ""
}

// newEstimator learns from a log and from the commands that are to run, as a dry run names them.
func newEstimator(known map[string]time.Duration, pending []string) *estimator {
	e := &estimator{known: known, kinds: map[string]mean{}, named: len(pending)}
	for output, took := range known {
		kind := e.kinds[kindOf(output)]
		e.kinds[kindOf(output)] = mean{kind.sum + took.Seconds(), kind.count + 1}
		e.all = mean{e.all.sum + took.Seconds(), e.all.count + 1}
	}
	for _, what := range pending {
		e.pending += e.weight(what)
	}
	return e
}

func (e *estimator) weight(what string) float64 {
	output := outputOf(what)
	if took, found := e.known[output]; found {
		return took.Seconds()
	}
	if kind := e.kinds[kindOf(output)]; kind.count > 0 {
		return kind.value()
	}
	if e.all.count > 0 {
		return e.all.value()
	}
	return 1
}

// end notes that a command has ended.
func (e *estimator) end(what string) {
	e.ended++
	e.done += e.weight(what)
}

// left is the time still to go after elapsed; not ok while too little has been seen. Where ninja found more to do than its
// dry run named (it configures again first, say), the commands are counted instead of weighed.
func (e *estimator) left(elapsed time.Duration, done, total int) (time.Duration, bool) {
	if e.ended == 0 || elapsed < time.Second {
		return 0, false
	}
	remaining, rate := e.pending-e.done, e.done/elapsed.Seconds()
	if e.named != total || remaining < 0 || e.done == 0 {
		remaining, rate = float64(total-done), float64(done)/elapsed.Seconds()
	}
	if rate == 0 {
		return 0, false
	}
	return time.Duration(remaining / rate * float64(time.Second)), true
}
