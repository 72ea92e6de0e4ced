package fork_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a program of somebody else's can do with the packages: it can name all that it needs, though events are internal.
const library = `package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"mpsforge/ci"
	"mpsforge/fork"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
)

func main() {
	series, err := patches.Load(patches.Embedded(), patches.DefaultBaseline)
	if err != nil {
		log.Fatal(err)
	}
	linted, err := patches.Lint(patches.Embedded(), patches.DefaultBaseline, nil)
	if err != nil {
		log.Fatal(err)
	}
	var sink fork.Sink
	sink, end := fork.EventsTo(os.Stderr, "example")
	report, err := validate.Run(context.Background(), validate.Options{Series: series, Lint: linted, NoCheckout: "none", Stages: []string{"series"}}, sink)
	end(err)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := fork.Fetch(context.Background(), series, fork.FetchOptions{Dir: "taken", From: "nowhere"}, nil); err == nil {
		log.Fatal("fetched from nowhere")
	}
	fmt.Println(report.Verdict == reports.Passed, ci.Options{}.Ready)
}
`

func TestOthersCanUseThePackages(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write("main.go", library)
	write("go.mod", strings.Replace(read("go.mod"), "module mpsforge", "module example", 1)+"\nrequire mpsforge v0.0.0\n\nreplace mpsforge => "+root+"\n")
	write("go.sum", read("go.sum"))
	command := exec.Command("go", "run", "-mod=mod", ".")
	command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // what is C++ would be compiled anew for this module, for a minute
	var told strings.Builder
	command.Stderr = &told
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	if string(output) != "true false\n" {
		t.Errorf("it printed %q", output)
	}
	for _, want := range []string{`"command":"example"`, `"step":"verify series","outcome":"ok"`, `"exit_code":0`} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("its stream lacks %s:\n%s", want, told.String())
		}
	}
}
