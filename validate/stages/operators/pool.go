package operators

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	lines "mpsforge/internal/words"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

//go:embed python/*.py
var sources embed.FS

// pool runs jobs on one subject. Its processes live until close, as they take long to start.
type pool struct {
	subject *pytests.Subject
	scripts string   // folder with storm.py
	leases  bool     // threads are to have streams of their own
	replay  []string // verify's options for this subject, where they name all that its jobs vary
	extra   []string // of the environment, for tests
	workers []*worker
}

// unpack writes the Python side into the cache, beside that of the parallel tests, whose module identity it uses.
func unpack(cache string) (string, error) { return pytests.Unpack(cache, pytests.Sources, sources) }

// program is storm.py with arguments, and the settings of its process.
func (p *pool) program(args ...string) (program, settings []string) {
	settings = []string{
		// A Mac's runtime ends a forked process that goes on without exec; the one that forks has used no class that this protects.
		"OBJC_DISABLE_INITIALIZE_FORK_SAFETY=YES",
		// What PyTorch has no Metal kernel for runs on the CPU, as users run it: the copies to and fro are the backend's.
		"PYTORCH_ENABLE_MPS_FALLBACK=1",
	}
	return append([]string{filepath.Join(p.scripts, "storm.py")}, args...), append(settings, p.extra...)
}

// worker is a process that forks one for each job. It is used by one goroutine.
type worker struct {
	server
	entries []entry
}

// server is what a worker needs of pytests.Server; tests have another one.
type server interface {
	Ask(line string) error
	Next(kind string, to any) error
	Close() error
}

// start runs a worker and waits until it has reported which torch it loaded, and what the database has.
func (p *pool) start(ctx context.Context) (*worker, error) {
	args, settings := p.program()
	served, err := p.subject.Serve(ctx, args, settings, slowSeconds*time.Second)
	if err != nil {
		return nil, err
	}
	var database struct{ Entries []entry }
	if err := served.Next("entries", &database); err != nil {
		return nil, errors.Join(err, served.Close())
	}
	if len(database.Entries) == 0 {
		return nil, errors.Join(errors.New("the operator database of this torch is empty"), served.Close())
	}
	return &worker{served, database.Entries}, nil
}

// ownFault is storm.py's exit code for faults of the Python side itself: no verdict on any operator.
const ownFault = 70

func (w *worker) do(j job) (result, error) {
	line, err := json.Marshal(j)
	if err != nil {
		return result{}, err
	}
	if err := w.Ask(string(line)); err != nil {
		return result{}, fmt.Errorf("give %s to its process: %w", j.cell, err)
	}
	var found result
	err = w.Next("result", &found)
	if err == nil && (found.ID != j.ID || found.Status == "") {
		err = fmt.Errorf("asked for job %d, got the result of %d: %q", j.ID, found.ID, found.Status)
	}
	if err == nil && found.Status == crashed && found.Exit == ownFault {
		err = fmt.Errorf("the process that runs it failed: %s", lines.LastLines(found.Stderr, 6))
	}
	if err != nil {
		return result{}, fmt.Errorf("%s: %w", j.cell, err)
	}
	return found, nil
}

// crew starts workers until there are enough of them, at the same time.
func (p *pool) crew(ctx context.Context, count int) error {
	var wait sync.WaitGroup
	started, failed := make([]*worker, max(0, count-len(p.workers))), make([]error, max(0, count-len(p.workers)))
	for i := range started {
		wait.Go(func() { started[i], failed[i] = p.start(ctx) })
	}
	wait.Wait()
	p.workers = append(p.workers, slices.DeleteFunc(started, func(w *worker) bool { return w == nil })...)
	return errors.Join(failed...)
}

// run runs the jobs. done is called for each end, one at a time.
func (p *pool) run(ctx context.Context, jobs []job, done func(outcome) error) error {
	if err := p.crew(ctx, min(stage.AtOnce(), len(jobs))); err != nil {
		return err
	}
	group, limited := errgroup.WithContext(ctx)
	queue := make(chan job)
	var mutex sync.Mutex
	for _, w := range p.workers {
		group.Go(func() error {
			for j := range queue {
				found, err := w.do(j)
				if err == nil {
					o := outcome{j, found}
					o.settle(p.leases && !ownSettings(j))
					mutex.Lock()
					err = done(o)
					mutex.Unlock()
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	for id, j := range jobs {
		j.ID = id
		select {
		case queue <- j:
		case <-limited.Done():
		}
	}
	close(queue)
	err := group.Wait()
	return cmp.Or(ctx.Err(), err)
}

// entries asks the subject for its operator database.
func (p *pool) entries(ctx context.Context) ([]entry, error) {
	if err := p.crew(ctx, stage.AtOnce()); err != nil {
		return nil, err
	}
	return p.workers[0].entries, nil
}

// close ends the workers.
func (p *pool) close() error {
	var all []error
	for _, w := range p.workers {
		all = append(all, w.Close())
	}
	p.workers = nil
	return errors.Join(all...)
}
