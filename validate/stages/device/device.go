// Package device is the stage that runs the corpus of Metal programs on a real Metal, each in a process of its own, and compares what they
// saw with what the software Metal gives. The same driver runs over the software Metal where there is no device, so that only the
// device itself is missing there.
package device

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/fork/macos/mac"
	"mpsforge/internal/events"
	"mpsforge/native"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/stage"
)

// Stage is the stage device of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "device", Question: "does a real Metal do what the software Metal does?",
		Needs: []stage.Need{stage.NeedsCache, stage.NeedsReference, stage.NeedsMetal},
		Run:   runStage,
	}
}

// Programs are those of the corpus that use Metal alone.
func Programs() ([]corpus.Program, error) {
	all, err := corpus.Programs()
	return slices.Concat(corpus.Of(all, corpus.Order), corpus.Of(all, corpus.Metal)), err
}

// runStage runs the driver over the software Metal, and over Apple's on a Mac; elsewhere it compiles and links what would run there.
func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	asked := slices.Contains(env.Stages, report.Name) || slices.Contains(env.Require, report.Name)
	_, noDevice := script.Identity(script.Apple)
	switch {
	case errors.Is(noDevice, script.ErrNoCgo):
		return stage.Skipf("%v", noDevice)
	case noDevice != nil && !asked:
		return stage.Skipf("%v; mpsforge verify --stages %s tries its driver over the software Metal, and links the Apple backend", noDevice, report.Name)
	}
	programs, err := Programs()
	if err != nil {
		return err
	}
	if err := subject(ctx, env, report, script.Software, "software Metal", programs); err != nil {
		return err
	}
	if noDevice == nil {
		env.Machine.MetalRan = true
		return subject(ctx, env, report, script.Apple, "device", programs)
	}
	if err := linkBackend(ctx, env, report); err != nil {
		return err
	}
	report.Add(reports.Check{Name: "programs on a real Metal", Subject: "device", Verdict: reports.NotRun, Detail: noDevice.Error()})
	if report.Verdict == reports.Passed { // of what is not a device: no verdict of the stage
		report.Verdict = ""
		return stage.Skipf("%v: nothing was run on a device. Its driver was tried over the software Metal, "+
			"and the Apple backend only compiled and linked", noDevice)
	}
	return nil
}

// subject runs the programs on a backend, writes the facts, and compares them.
func subject(ctx context.Context, env *stage.Env, report *reports.Stage, backend script.Backend, name string, programs []corpus.Program) error {
	facts := Facts{Schema: Schema, Tool: env.Tool, System: runtime.GOOS + "/" + runtime.GOARCH}
	for i, program := range programs {
		env.Sink.Emit(events.StepProgress{Step: stage.StepName(report.Name), Done: int64(i), Total: int64(len(programs)), Unit: "programs", Note: name})
		found, identity, err := observe(ctx, backend, program)
		if err != nil {
			return err
		}
		if identity != "" {
			facts.Backend = identity
		}
		facts.Programs = append(facts.Programs, found)
	}
	if err := os.MkdirAll(env.Artifacts, 0o755); err != nil {
		return err
	}
	file := filepath.Join(env.Artifacts, "facts-"+string(backend)+".json")
	if err := facts.Write(file); err != nil {
		return err
	}
	report.Facts = append(report.Facts, reports.Fact{Name: "backend", Value: facts.Backend}, reports.Fact{Name: "facts of " + name, Value: file})
	report.Seeds = []uint64{env.Seed}
	compared, err := Compare(ctx, facts, programs, env.Seed)
	if err != nil {
		return err
	}
	for _, c := range compared {
		check := reports.Check{Name: c.Program.Group + ": " + c.Name, Subject: name, Verdict: reports.Passed, Detail: c.Detail}
		switch {
		case len(c.Differences) > 0:
			check.Verdict, check.Detail, check.Output, check.Artifact = reports.Failed, strings.Join(c.Differences, "; "), c.Program.Text, file
		case c.NotCompared != "":
			check.Verdict, check.Detail = reports.NotRun, strings.TrimPrefix(c.Detail+"; not compared: "+c.NotCompared, "; ")
		default:
			report.Count("programs compared, "+name, 1)
		}
		report.Add(check)
	}
	return nil
}

// linkBackend compiles the Apple backend for macOS, which shows that it is whole and nothing more.
func linkBackend(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	check := reports.Check{Name: "the Apple backend compiles and links", Subject: "arm64 macOS", Verdict: reports.Passed}
	started := time.Now()
	detail, err := mac.LinkBackend(ctx, env.Cache, native.Apple, env.Sink)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, builds.ErrEnvironment):
		check.Verdict, check.Detail = reports.Skipped, err.Error()
	case err != nil:
		check.Verdict, check.Detail, check.Output = reports.Failed, "it does not", err.Error()
	default:
		check.Detail = detail + "; not run: this needs a Mac"
	}
	check.Seconds = time.Since(started).Seconds()
	report.Add(check)
	return nil
}
