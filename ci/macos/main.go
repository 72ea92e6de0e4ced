// Command macos makes what go build needs to build mpsforge for macOS with its C++ on Linux, and looks at what came of it.
//
//	go run ./ci/macos compilers CACHE ARCH   print a folder with the compilers cc-ARCH and c++-ARCH
//	go run ./ci/macos check FILE ARCH        look at the binary
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/mac"
	"mpsforge/internal/events"
)

func main() {
	err := errors.New("usage: macos compilers CACHE ARCH | macos check FILE ARCH")
	if len(os.Args) == 4 {
		switch os.Args[1] {
		case "compilers":
			err = compilers(context.Background(), os.Args[2], os.Args[3])
		case "check":
			err = check(os.Args[2], os.Args[3])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "macos:", err)
		if errors.Is(err, builds.ErrEnvironment) {
			os.Exit(5)
		}
		os.Exit(1)
	}
}

func compilers(ctx context.Context, cache, arch string) error {
	unlock, err := host.Lock(ctx, mac.Folder(cache), events.Discard)
	if err != nil {
		return err
	}
	defer unlock()
	dir, err := mac.Compilers(ctx, cache, arch, events.Discard)
	if err == nil {
		_, err = fmt.Println(dir)
	}
	return err
}

func check(file, arch string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := mac.CheckProgram(data, arch); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
