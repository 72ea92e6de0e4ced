package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/urfave/cli/v2"

	"mpsforge/internal/events"
)

// settingsFile is read from the current folder and from no other.
const settingsFile = ".mpsforge.toml"

// mostSettings is how many bytes of it are read.
const mostSettings = 64 << 10

// settings are flags that need not be typed each time. None of them names a program or a place to write to.
type settings struct {
	Checkout string   `toml:"checkout"`
	Baseline string   `toml:"baseline"`
	Stages   []string `toml:"stages"`
	Bell     bool     `toml:"bell"`
}

// applySettings sets the flags that neither the command line nor the environment has set, and gives what it set by the flags'
// names, but for the bell, which changes nothing that a report shows. A PyTorch tree's own file is not read: who wrote the tree
// does not decide what is verified.
func applySettings(c *cli.Context, sink events.Sink) (map[string]string, error) {
	if !slices.ContainsFunc([]string{"checkout", "baseline", "stages", "bell"}, func(name string) bool { return flagNamed(c.Command, name) != nil }) {
		return nil, nil // a file that is broken stops nothing that does not need it
	}
	info, err := os.Lstat(settingsFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read %s: %w", settingsFile, err)
	}
	if _, err := os.Stat(filepath.Join("aten", "src", "ATen")); err == nil {
		sink.Emit(events.Message{Level: events.Warning, Text: settingsFile + " is not read: this folder is a PyTorch tree"})
		return nil, nil
	}
	if !info.Mode().IsRegular() {
		return nil, usagef("%s is not a file: put the settings in a file, or remove it", settingsFile)
	}
	read, err := readSettings()
	if err != nil {
		return nil, err
	}
	if read.Bell && !c.IsSet("bell") && flagNamed(c.Command, "bell") != nil {
		if err := c.Set("bell", "true"); err != nil {
			return nil, usagef("%s: bell: %v", settingsFile, err)
		}
	}
	made := map[string]string{}
	for name, value := range map[string]string{"checkout": read.Checkout, "baseline": read.Baseline, "stages": strings.Join(read.Stages, ",")} {
		if value == "" || c.IsSet(name) || flagNamed(c.Command, name) == nil {
			continue
		}
		if err := c.Set(name, value); err != nil {
			return nil, usagef("%s: %s: %v", settingsFile, name, err)
		}
		made[name] = value
	}
	return made, nil
}

func readSettings() (settings, error) {
	var read settings
	file, err := os.Open(settingsFile)
	if err != nil {
		return read, fmt.Errorf("read settings: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostSettings+1))
	if err != nil {
		return read, fmt.Errorf("read settings: %w", err)
	}
	if len(text) > mostSettings {
		return read, usagef("%s is larger than %d bytes", settingsFile, mostSettings)
	}
	return parseSettings(string(text))
}

func parseSettings(text string) (settings, error) {
	var read settings
	found, err := toml.Decode(text, &read)
	if err != nil {
		return read, usagef("%s: %v", settingsFile, err)
	}
	if unknown := found.Undecoded(); len(unknown) > 0 {
		return read, usagef("%s: there is no setting %s; there are checkout, baseline, stages and bell", settingsFile, unknown[0])
	}
	return read, nil
}
