package pytests

import (
	"context"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/reports"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// What stages use that run programs of their own on a subject, beside the parallel tests.

// Program is a program in the subject's Python, with the environment of all its processes and more settings.
func (s *Subject) Program(args, more []string) run.Command {
	return run.Command{Name: s.interpreter, Args: args, Env: run.Environment(slices.Concat(s.environment, more), func(name string) bool {
		return process.Drop(name) || name == "PYTHONDONTWRITEBYTECODE"
	})}
}

// With is the same subject under another name, with more settings in its environment.
func (s *Subject) With(name string, settings ...string) *Subject {
	other := *s
	other.Name, other.environment = name, slices.Concat(s.environment, settings)
	return &other
}

// Check compares what a process says that it loaded with the torch to be tested; the error wraps ErrOtherTorch.
func (s *Subject) Check(found Identity) error { return s.wanted.mismatch(found) }

// Identity says in one text what the subject's processes load, once it has been proven: what the same text runs on is the same.
func (s *Subject) Identity() string {
	if s.wanted.file == nil {
		return ""
	}
	f := s.wanted.file
	return strings.Join([]string{f.Torch, f.Git, f.Python, f.Stamp, f.Digest}, "\n")
}

// Settings are what the subject's processes have in their environment, as NAME=value.
func (s *Subject) Settings() []string { return append([]string{}, s.environment...) }

// Over builds sources in a flavour, and gives the subject over them, proven.
func Over(ctx context.Context, env *stage.Env, report *reports.Stage, builder *hosts.Builder, name string, source *fork.Snapshot,
	flavour builds.Flavour) (*Subject, error) {
	scripts, err := unpackPython(env.Cache)
	if err != nil {
		return nil, err
	}
	s, err := overHostBuild(ctx, env, scripts, builder, name, source, flavour)
	if err != nil {
		return nil, err
	}
	return s, s.prove(ctx, report)
}
