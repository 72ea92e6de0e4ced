package allocator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mpsforge/native/slots"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// slotScenario is a short program with an expected outcome, the same in every run.
type slotScenario struct {
	name string
	rule string // of the pool
	run  func(*trial)
}

// trial is one run of a scenario on a subject.
type trial struct {
	subject  *slots.Subject
	patience time.Duration
	pools    []*slots.Slots
	problems []string
	stuck    bool // a thread may still be inside the subject
}

// CheckScenarios runs the named scenarios, or all if none is named: one check each. They call the subject from this process.
func CheckScenarios(ctx context.Context, c *stage.Checker, subject *slots.Subject, only ...string) []reports.Check {
	var checks []reports.Check
	for _, scenario := range slotScenarios {
		if len(only) > 0 && !slices.Contains(only, scenario.name) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		check := reports.Check{Name: scenario.name, Rule: scenario.rule, Verdict: reports.Passed}
		checks = append(checks, c.Check(ctx, check, func(check *reports.Check) {
			if problems := perform(ctx, scenario, &trial{subject: subject, patience: c.Patience}); len(problems) > 0 {
				check.Verdict, check.Detail = reports.Failed, strings.Join(problems, "; ")
			}
			c.Count("scenarios", 1)
		}))
	}
	return checks
}

// perform runs a scenario and returns what went wrong. A call into the subject cannot be interrupted: if one does not
// come back, its goroutine is left behind.
func perform(ctx context.Context, scenario slotScenario, t *trial) []string {
	done := make(chan []string, 1)
	go func() {
		t.attempt(scenario.run)
		done <- t.problems
	}()
	select {
	case problems := <-done:
		return problems
	case <-time.After(4 * t.patience):
		return []string{fmt.Sprintf("hangs: not finished after %v", 4*t.patience)}
	case <-ctx.Done():
		return []string{ctx.Err().Error()}
	}
}

// trialStopped is the panic that stop raises and attempt takes.
type trialStopped struct{}

// attempt runs a scenario and frees its allocators, unless a thread may still be inside one.
func (t *trial) attempt(run func(*trial)) {
	defer func() {
		if reason := recover(); reason != nil && reason != (trialStopped{}) {
			panic(reason)
		}
		if t.stuck {
			return
		}
		for _, pool := range t.pools {
			pool.Close()
		}
	}()
	run(t)
}

// stop ends the scenario at once, because what follows would make no sense. Some thread may be inside the subject.
func (t *trial) stop(format string, args ...any) {
	t.failf(format, args...)
	t.stuck = true
	panic(trialStopped{})
}

func (t *trial) failf(format string, args ...any) {
	// The first few are enough; a thousand slots could say the same a thousand times.
	if len(t.problems) < 5 {
		t.problems = append(t.problems, fmt.Sprintf(format, args...))
	}
}

// give makes an allocator.
func (t *trial) give(workerSlots uint32, policy slots.Policy, waitMS int64) *slots.Slots {
	pool, err := t.subject.New(slots.Config{WorkerSlots: workerSlots, Policy: policy, WaitMS: waitMS})
	if err != nil {
		t.stop("%v", err)
	}
	t.pools = append(t.pools, pool)
	return pool
}

// lease acquires and expects this slot and generation.
func (t *trial) lease(pool *slots.Slots, slot uint32, generation uint64) {
	t.expect(pool.Acquire(), slots.Result{Outcome: slots.Leased, Slot: slot, Generation: generation})
}

// fill leases every slot of a new allocator.
func (t *trial) fill(pool *slots.Slots, n uint32) {
	for slot := range n {
		t.lease(pool, slot, 1)
	}
}

func (t *trial) expect(found, want slots.Result) {
	if found != want {
		t.failf("acquire: expected %s, found %s", describeResult(want), describeResult(found))
	}
}

func describeResult(r slots.Result) string {
	switch {
	case r.Outcome == slots.Leased:
		return fmt.Sprintf("slot %d generation %d", r.Slot, r.Generation)
	case r.FirstShare:
		return r.Outcome.String() + " for the first time"
	}
	return r.Outcome.String()
}

// release expects the release to be accepted, refuse to be refused.
func (t *trial) release(pool *slots.Slots, slot uint32, generation uint64) {
	if !pool.Release(slot, generation) {
		t.failf("release of slot %d generation %d: expected accepted, found refused", slot, generation)
	}
}

func (t *trial) refuse(pool *slots.Slots, slot uint32, generation uint64, why string) {
	if pool.Release(slot, generation) {
		t.failf("%s release of slot %d generation %d: expected refused, found accepted", why, slot, generation)
	}
}

func (t *trial) statistics(pool *slots.Slots, want slots.Statistics) {
	if found := pool.Statistics(); found != want {
		t.failf("statistics: expected %+v, found %+v", want, found)
	}
}

// start acquires on a thread of its own and returns when that thread waits as number waiting in the queue.
func (t *trial) start(pool *slots.Slots, waiting uint64) <-chan slots.Result {
	done := make(chan slots.Result, 1)
	go func() { done <- pool.Acquire() }()
	for deadline := time.Now().Add(t.patience); pool.Statistics().Waiting != waiting; {
		if len(done) > 0 || time.Now().After(deadline) {
			t.stop("a thread does not wait as number %d in the queue", waiting)
		}
		time.Sleep(50 * time.Microsecond)
	}
	return done
}

// await takes the result of start.
func (t *trial) await(done <-chan slots.Result) slots.Result {
	select {
	case result := <-done:
		return result
	case <-time.After(t.patience):
		t.stop("lost wake-up: a waiting thread has not come back after %v", t.patience)
		return slots.Result{}
	}
}

// served expects that the result of start is this lease.
func (t *trial) served(done <-chan slots.Result, slot uint32, generation uint64) {
	want := slots.Result{Outcome: slots.Leased, Slot: slot, Generation: generation}
	if found := t.await(done); found != want {
		t.stop("waiter: expected %s, found %s", describeResult(want), describeResult(found))
	}
}

// asleep expects that no result has come. A subject that is wrong may pass by luck; a right one never fails.
func (t *trial) asleep(done <-chan slots.Result, who string) {
	select {
	case result := <-done:
		t.stop("%s came back too early with %s", who, describeResult(result))
	default:
	}
}

// sometime repeats an attempt that depends on time limits until it succeeds, because a slow machine may spoil one; it
// fails if none of them does.
func (t *trial) sometime(attempt func(*trial)) {
	started := time.Now()
	for i := 1; ; i++ {
		one := &trial{subject: t.subject, patience: t.patience}
		one.attempt(attempt)
		if len(one.problems) == 0 {
			return
		}
		if i == 5 || time.Since(started) > t.patience {
			t.problems = append(t.problems, one.problems...)
			return
		}
	}
}

// slotScenarios is the one table of scripted scenarios.
var slotScenarios = []slotScenario{
	{"the lowest free slot is taken", "2", func(t *trial) {
		pool := t.give(5, slots.Share, -1)
		t.fill(pool, 5)
		t.release(pool, 3, 1)
		t.release(pool, 1, 1)
		t.lease(pool, 1, 3)
		t.lease(pool, 3, 3)
	}},
	{"a returned slot is leased again, with a new generation", "2", func(t *trial) {
		pool := t.give(1, slots.Share, -1)
		for generation := uint64(1); generation < 200; generation += 2 {
			t.lease(pool, 0, generation)
			t.release(pool, 0, generation)
		}
	}},
	{"a second return is refused", "2", func(t *trial) {
		pool := t.give(2, slots.Share, -1)
		t.fill(pool, 2)
		t.release(pool, 0, 1)
		t.refuse(pool, 0, 1, "second")
		t.lease(pool, 0, 3)
	}},
	{"a stale return is refused while the slot is leased again", "2", func(t *trial) {
		pool := t.give(1, slots.Share, -1)
		t.lease(pool, 0, 1)
		t.release(pool, 0, 1)
		t.lease(pool, 0, 3)
		t.refuse(pool, 0, 1, "stale")
		t.expect(pool.Acquire(), slots.Result{Outcome: slots.Shared, FirstShare: true}) // the lease is still valid
		t.release(pool, 0, 3)
	}},
	{"a made-up return is refused", "2", func(t *trial) {
		pool := t.give(33, slots.Share, -1)
		t.lease(pool, 0, 1)
		for _, made := range []struct {
			slot       uint32
			generation uint64
		}{{0, 0}, {0, 2}, {0, 3}, {0, ^uint64(0)}, {1, 1}, {1, 0}, {32, 1}, {33, 1}, {64, 1}, {1023, 1}, {^uint32(0), 1}} {
			t.refuse(pool, made.slot, made.generation, "made-up")
		}
		t.statistics(pool, slots.Statistics{Live: 1, Peak: 1, Leases: 1, Refused: 11})
		t.release(pool, 0, 1)
	}},
	{"the pool grows to its cap and back: 1 slot", "7", growth(1)},
	{"the pool grows to its cap and back: 31 slots, the default", "7", growth(31)},
	{"the pool grows to its cap and back: 32 slots", "7", growth(32)},
	{"the pool grows to its cap and back: 33 slots", "7", growth(33)},
	{"the pool grows to its cap and back: 65 slots", "7", growth(65)},
	{"the pool grows to its cap and back: 1023 slots, the most", "7", growth(1023)},
	{"a cap out of range is refused", "7", func(t *trial) {
		for _, workerSlots := range []uint32{0, slots.MaxWorkerSlots + 1, ^uint32(0)} {
			if pool, err := t.subject.New(slots.Config{WorkerSlots: workerSlots}); err == nil {
				pool.Close()
				t.failf("%d worker slots: expected refused, found accepted", workerSlots)
			}
		}
	}},
	{"good settings are read", "7, 8", func(t *trial) { parseCases(t, goodSettings) }},
	{"bad settings give one warning and the default", "7, 8", func(t *trial) { parseCases(t, badSettings) }},
	{"share: a full pool answers at once, the first time marked", "8", func(t *trial) {
		pool := t.give(2, slots.Share, 1000)
		t.fill(pool, 2)
		t.expect(pool.Acquire(), slots.Result{Outcome: slots.Shared, FirstShare: true})
		t.expect(pool.Acquire(), slots.Result{Outcome: slots.Shared})
		t.release(pool, 1, 1)
		t.lease(pool, 1, 3) // sharing ends when a slot is back
		t.expect(pool.Acquire(), slots.Result{Outcome: slots.Shared})
		t.statistics(pool, slots.Statistics{Live: 2, Peak: 2, Leases: 3, Shares: 3})
	}},
	{"the texts name the cap, the live threads and the variable", "8", func(t *trial) {
		pool := t.give(19, slots.Share, -1)
		for range 17 {
			pool.Acquire()
		}
		for _, text := range []string{pool.ShareWarning(), pool.ExhaustedError()} {
			for _, part := range []string{"19", "17", "PYTORCH_MPS_STREAM_POOL_SIZE"} {
				if !strings.Contains(text, part) {
					t.failf("expected %q in %q", part, text)
				}
			}
		}
	}},
	{"wait: first come, first served", "8", func(t *trial) {
		pool := t.give(1, slots.Wait, -1)
		t.fill(pool, 1)
		first, second, third := t.start(pool, 1), t.start(pool, 2), t.start(pool, 3)
		for i, waiter := range []<-chan slots.Result{first, second, third} {
			generation := uint64(1 + 2*i)
			t.release(pool, 0, generation)
			t.served(waiter, 0, generation+2)
		}
		t.release(pool, 0, 7)
		t.statistics(pool, slots.Statistics{Peak: 1, Leases: 4, Waits: 3})
	}},
	{"wait: a newcomer does not overtake", "8", func(t *trial) {
		pool := t.give(1, slots.Wait, -1)
		t.fill(pool, 1)
		generation := uint64(1)
		for range 50 {
			waiter := t.start(pool, 1)
			newcomer := make(chan slots.Result, 1)
			t.release(pool, 0, generation)
			go func() { newcomer <- pool.Acquire() }()
			t.served(waiter, 0, generation+2)
			t.asleep(newcomer, "the newcomer")
			t.release(pool, 0, generation+2)
			generation += 4
			t.served(newcomer, 0, generation)
		}
	}},
	{"wait: what comes back goes to the waiter, not to a lower slot", "8", func(t *trial) {
		pool := t.give(34, slots.Wait, -1)
		t.fill(pool, 34)
		waiter := t.start(pool, 1)
		t.release(pool, 33, 1)
		t.served(waiter, 33, 3)
	}},
	{"wait: two slots come back for three waiters", "8", func(t *trial) {
		pool := t.give(2, slots.Wait, -1)
		t.fill(pool, 2)
		first, second, third := t.start(pool, 1), t.start(pool, 2), t.start(pool, 3)
		t.release(pool, 1, 1)
		t.served(first, 1, 3)
		t.release(pool, 0, 1)
		t.served(second, 0, 3)
		t.asleep(third, "the third")
		t.release(pool, 0, 3)
		t.served(third, 0, 5)
	}},
	{"wait: the lease handed to a waiter is a lease like any other", "2, 8", func(t *trial) {
		pool := t.give(1, slots.Wait, -1)
		t.fill(pool, 1)
		waiter := t.start(pool, 1)
		t.release(pool, 0, 1)
		t.served(waiter, 0, 3)
		t.refuse(pool, 0, 1, "stale")
		t.statistics(pool, slots.Statistics{Live: 1, Peak: 1, Leases: 2, Waits: 1, Refused: 1})
		t.release(pool, 0, 3)
		t.refuse(pool, 0, 3, "second")
		t.lease(pool, 0, 5)
	}},
	{"wait: time is up at the limit, and the waiter is gone", "8", func(t *trial) {
		pool := t.give(1, slots.Wait, 30)
		t.fill(pool, 1)
		started := time.Now()
		t.expect(pool.Acquire(), slots.Result{Outcome: slots.Exhausted})
		if took := time.Since(started); took < 30*time.Millisecond {
			t.failf("limit 30 ms: came back after %v", took)
		}
		t.statistics(pool, slots.Statistics{Live: 1, Peak: 1, Leases: 1, Waits: 1, Exhausted: 1})
		t.release(pool, 0, 1)
		t.lease(pool, 0, 3)
	}},
	{"wait: a limit of 0 ms does not wait", "8", func(t *trial) {
		pool := t.give(1, slots.Wait, 0)
		t.fill(pool, 1)
		t.expect(pool.Acquire(), slots.Result{Outcome: slots.Exhausted})
		if waiting := pool.Statistics().Waiting; waiting != 0 {
			t.failf("%d threads wait", waiting)
		}
		t.release(pool, 0, 1)
		t.lease(pool, 0, 3)
	}},
	{"wait: the longest limit does not end early", "8", func(t *trial) {
		pool := t.give(1, slots.Wait, 1<<63-1)
		t.fill(pool, 1)
		waiter := t.start(pool, 1)
		time.Sleep(500 * time.Millisecond) // a release at once would serve one whose limit has ended, but who still waits for the lock
		t.asleep(waiter, "the waiter")
		t.release(pool, 0, 1)
		t.served(waiter, 0, 3)
	}},
	{"wait: the next one is served after one whose time was up", "8", func(t *trial) {
		t.sometime(func(t *trial) {
			pool := t.give(1, slots.Wait, 300)
			t.fill(pool, 1)
			first := t.start(pool, 1)
			time.Sleep(150 * time.Millisecond)
			second := t.start(pool, 2)
			t.expect(t.await(first), slots.Result{Outcome: slots.Exhausted})
			t.release(pool, 0, 1)
			t.served(second, 0, 3)
		})
	}},
	{"error: a slot on its way back is waited for", "8", func(t *trial) {
		t.sometime(func(t *trial) {
			pool := t.give(1, slots.Error, 0)
			t.fill(pool, 1)
			waiter := t.start(pool, 1)
			t.release(pool, 0, 1)
			t.served(waiter, 0, 3)
		})
	}},
	{"error: after 100 ms there is none", "8", func(t *trial) {
		pool := t.give(1, slots.Error, -1)
		t.fill(pool, 1)
		started := time.Now()
		t.expect(pool.Acquire(), slots.Result{Outcome: slots.Exhausted})
		if took := time.Since(started); took < 100*time.Millisecond {
			t.failf("came back after %v, before 100 ms", took)
		}
		t.statistics(pool, slots.Statistics{Live: 1, Peak: 1, Leases: 1, Waits: 1, Exhausted: 1})
	}},
	{"the statistics are exact", "26", func(t *trial) {
		pool := t.give(40, slots.Wait, 0)
		t.statistics(pool, slots.Statistics{})
		t.fill(pool, 36)
		t.release(pool, 35, 1)
		t.release(pool, 2, 1)
		t.refuse(pool, 2, 1, "second")
		t.statistics(pool, slots.Statistics{Live: 34, Peak: 36, Leases: 36, Refused: 1})
		t.lease(pool, 2, 3)
		for slot := uint32(35); slot < 40; slot++ {
			t.lease(pool, slot, map[bool]uint64{true: 3, false: 1}[slot == 35])
		}
		t.expect(pool.Acquire(), slots.Result{Outcome: slots.Exhausted})
		t.statistics(pool, slots.Statistics{Live: 40, Peak: 40, Leases: 42, Waits: 1, Exhausted: 1, Refused: 1})
	}},
}

// growth leases every slot, twice, and finds the pool full at exactly its cap.
func growth(workerSlots uint32) func(*trial) {
	return func(t *trial) {
		pool := t.give(workerSlots, slots.Share, -1)
		for round := uint64(0); round < 2; round++ {
			for slot := range workerSlots {
				t.lease(pool, slot, 1+2*round)
			}
			t.expect(pool.Acquire(), slots.Result{Outcome: slots.Shared, FirstShare: round == 0})
			t.statistics(pool, slots.Statistics{Live: uint64(workerSlots), Peak: uint64(workerSlots), Leases: (round + 1) * uint64(workerSlots),
				Shares: round + 1})
			for slot := range workerSlots {
				t.release(pool, workerSlots-1-slot, 1+2*round)
			}
		}
	}
}

// setting is a text for each of the two variables, "-" meaning unset, and what comes of it.
type setting struct {
	size, exhausted string
	want            slots.Config
	warn            []string // the last part of the name of each variable that is warned about
}

var goodSettings = []setting{
	{"-", "-", slots.Config{WorkerSlots: 31, Policy: slots.Share, WaitMS: -1}, nil},
	{"2", "share", slots.Config{WorkerSlots: 1, Policy: slots.Share, WaitMS: -1}, nil},
	{"1024", "wait", slots.Config{WorkerSlots: 1023, Policy: slots.Wait, WaitMS: -1}, nil},
	{"3", "wait:0", slots.Config{WorkerSlots: 2, Policy: slots.Wait, WaitMS: 0}, nil},
	{"9", "wait:9223372036854775807", slots.Config{WorkerSlots: 8, Policy: slots.Wait, WaitMS: 1<<63 - 1}, nil},
	{"9", "error", slots.Config{WorkerSlots: 8, Policy: slots.Error, WaitMS: -1}, nil},
}

var badSettings = []setting{
	{"1", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"0", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"-5", "wait:7", slots.Config{WorkerSlots: 31, Policy: slots.Wait, WaitMS: 7}, []string{"SIZE"}},
	{"1025", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"4294967298", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"99999999999999999999", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"8 ", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"8x", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"0x10", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"many", "-", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"SIZE"}},
	{"", "", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"EXHAUSTED", "SIZE"}},
	{"-", "Wait", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"EXHAUSTED"}},
	{"-", "share,wait", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"EXHAUSTED"}},
	{"-", "share:5", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"EXHAUSTED"}},
	{"4", "wait:", slots.Config{WorkerSlots: 3, WaitMS: -1}, []string{"EXHAUSTED"}},
	{"4", "wait:-1", slots.Config{WorkerSlots: 3, WaitMS: -1}, []string{"EXHAUSTED"}},
	{"4", "wait:9223372036854775808", slots.Config{WorkerSlots: 3, WaitMS: -1}, []string{"EXHAUSTED"}},
	{"4", "wait:1.5", slots.Config{WorkerSlots: 3, WaitMS: -1}, []string{"EXHAUSTED"}},
	{"a", "b", slots.Config{WorkerSlots: 31, WaitMS: -1}, []string{"EXHAUSTED", "SIZE"}},
}

func parseCases(t *trial, cases []setting) {
	for _, s := range cases {
		texts := [2]*string{}
		for i, text := range []string{s.size, s.exhausted} {
			if text != "-" {
				texts[i] = &text
			}
		}
		what := fmt.Sprintf("SIZE=%q EXHAUSTED=%q", s.size, s.exhausted)
		config, warnings := t.subject.Parse(texts[0], texts[1])
		if config != s.want {
			t.failf("%s: expected %+v, found %+v", what, s.want, config)
		}
		if len(warnings) != len(s.warn) {
			t.failf("%s: expected %d warnings, found %q", what, len(s.warn), warnings)
			continue
		}
		all := strings.Join(warnings, "\n")
		for _, variable := range s.warn {
			if strings.Count(all, "PYTORCH_MPS_STREAM_POOL_"+variable+"=") != 1 {
				t.failf("%s: expected one warning that names %s, found %q", what, variable, warnings)
			}
		}
	}
}
