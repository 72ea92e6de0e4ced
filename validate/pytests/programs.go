package pytests

import (
	"context"
	"path/filepath"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/reports"
	"mpsforge/validate/hosts"
	"mpsforge/validate/stage"
)

// What stages use that run programs of their own on a subject, beside the parallel tests.

// Program is a Python file, with arguments, to be run on the subject's torch. settings are put over its environment.
func (s *Subject) Program(path string, args, settings []string) run.Command {
	return run.Command{Name: s.interpreter, Args: append([]string{path}, args...), Env: s.processEnvironment(settings...)}
}

// Settings are what the subject's processes have in their environment, as NAME=value.
func (s *Subject) Settings() []string { return append([]string{}, s.environment...) }

// Patches are those that the subject's torch has.
func (s *Subject) Patches() []string { return append([]string{}, s.patches...) }

// Stamp is the one that the loaded library bore when the subject was proven; where it has none, the digest of its file.
func (s *Subject) Stamp() string {
	if s.wanted.file == nil {
		return ""
	}
	return orNone(s.wanted.file.Stamp) + " " + s.wanted.file.Digest
}

// CheckIdentity compares what a process says that it loaded with what is to be tested; the error wraps ErrOtherTorch.
func (s *Subject) CheckIdentity(found Identity) error { return s.wanted.mismatch(found) }

// Over builds sources in a flavour, and gives the subject over them, proven.
func Over(ctx context.Context, env *stage.Env, report *reports.Stage, builder *hosts.Builder, name string, source *fork.Snapshot, flavour builds.Flavour) (*Subject, error) {
	scripts, err := unpackPython(env.Cache)
	if err != nil {
		return nil, err
	}
	s, err := overHostBuild(ctx, builder, source, flavour, func(interpreter string) *Subject { return newSubject(env, scripts, name, interpreter, source.Patches) })
	if err != nil {
		return nil, err
	}
	return s, s.prove(ctx, report)
}

// processEnvironment is the environment of the subject's processes: nothing that switches the backend comes from outside.
func (s *Subject) processEnvironment(settings ...string) []string {
	return run.Environment(append(s.Settings(), settings...), func(name string) bool {
		return strings.HasPrefix(name, "PYTORCH_") || strings.HasPrefix(name, "MPS_") || strings.HasPrefix(name, "MPSFORGE_") || name == "LD_PRELOAD" || name == "PYTHONDONTWRITEBYTECODE"
	})
}

// Interpreter is the Python's path.
func (s *Subject) Interpreter() string { return filepath.Clean(s.interpreter) }
