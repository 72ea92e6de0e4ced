package fork_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mpsforge/fork"
	"mpsforge/patches"
)

// A series goes onto a checkout as commits, all or nothing, and comes off again.
func Example() {
	dir, err := os.MkdirTemp("", "fork")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	series := greeting(dir)

	ctx := context.Background()
	checkout, err := fork.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer checkout.Close()
	applied, err := checkout.Apply(ctx, series, fork.Options{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("applied:", applied.Patches, "changed:", applied.Paths)
	status, err := checkout.Status(ctx, series)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("status:", status.Condition)
	removed, err := checkout.Unapply(ctx, series, fork.Options{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("taken off:", removed.Patches)
	// Output:
	// applied: [greet-the-world] changed: [hello]
	// status: applied
	// taken off: [greet-the-world]
}

// greeting makes a small repository in dir, and a series of one patch for it.
func greeting(dir string) *patches.Series {
	git := func(args ...string) string {
		command := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", "-c",
			"commit.gpgsign=false"}, args...)...)
		output, err := command.Output()
		if err != nil {
			log.Fatalf("git %v: %v", args, err)
		}
		return string(output)
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "hello"), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	git("init", "-q")
	write("hello\n")
	git("add", "hello")
	git("commit", "-q", "-m", "PyTorch")
	id := func(revision string) string { return strings.TrimSpace(git("rev-parse", revision)) }
	blob := id("HEAD:hello")
	baseline := patches.Baseline{Schema: 1, Name: "v2.9.1", Tag: "v2.9.1", Commit: id("HEAD"), Tree: id("HEAD^{tree}"),
		Touched: map[string]*string{"hello": &blob}}

	write("world\n")
	git("commit", "-q", "-a", "-m", "Greet the world")
	mail := git("format-patch", "-k", "--no-stat", "--no-signature", "--zero-commit", "--full-index", "--stdout", "HEAD^")
	git("reset", "-q", "--hard", "HEAD^")
	patch, err := patches.Parse("greet-the-world", []byte(mail))
	if err != nil {
		log.Fatal(err)
	}
	return &patches.Series{Baseline: baseline, Patches: []*patches.Patch{patch}}
}
