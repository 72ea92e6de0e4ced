package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mpsforge/fork/macos/build"
)

// layer shows the folder template as run, with what is changed there in the folder changes.
func layer() error {
	if err := errors.Join(os.MkdirAll("run", 0o755), os.MkdirAll(changes, 0o755), os.MkdirAll("disk/work", 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("overlay", "run", "overlay", 0, "lowerdir=template,upperdir="+changes+",workdir=disk/work,redirect_dir=on"); err != nil {
		return errNoMount{err}
	}
	return nil
}

// unmountAll takes away what layer and onDisk mounted; mostly there is nothing.
func unmountAll() {
	for _, dir := range []string{"run", "disk"} {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
}

// onDisk runs the command where changes go to a file system of their own that has so much room in KiB, or, with less than none, where
// nothing can be written to. With room again, all is as before or as after.
func (k *killing) onDisk(room int) error {
	if err := errors.Join(cleared(), os.Mkdir("disk", 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "disk", "tmpfs", 0, "size=1g"); err != nil {
		return errNoMount{err}
	}
	defer unmountAll()
	// A tmpfs of no size would have no limit: one block is taken.
	if err := errors.Join(layer(), os.WriteFile("disk/taken", []byte{0}, 0o644)); err != nil {
		return err
	}
	limit := func() error {
		if room < 0 {
			return unix.Mount("", "run", "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
		}
		return unix.Mount("", "disk", "", unix.MS_REMOUNT, fmt.Sprintf("size=%dk", 4+room))
	}
	if err := limit(); err != nil {
		return err
	}
	output, commandErr := k.command("TMPDIR=/tmp").CombinedOutput()
	if err := errors.Join(unix.Mount("", "run", "", unix.MS_REMOUNT, ""), unix.Mount("", "disk", "", unix.MS_REMOUNT, "size=1g")); err != nil {
		return err
	}
	now, err := k.files()
	if err != nil {
		return err
	}
	switch {
	case commandErr == nil && !maps.Equal(now, k.after):
		return fmt.Errorf("it ends well, and has not done it: %s", differences(k.before, now, k.after))
	case commandErr != nil && len(bytes.TrimSpace(output)) == 0:
		return fmt.Errorf("it does not say why it failed: %w", commandErr)
	case commandErr != nil && bytes.Contains(output, []byte("panic: ")):
		return fmt.Errorf("%w: %s", commandErr, output)
	}
	return k.look()
}

// twice runs the command two times, the second so long after the first: one of the two goes through, and the other does, too, or says
// why not.
func (k *killing) twice(apart time.Duration) error {
	if err := fresh(); err != nil {
		return err
	}
	var said [2]bytes.Buffer
	var commands [2]*exec.Cmd
	for i := range commands {
		commands[i] = k.command()
		commands[i].Stdout, commands[i].Stderr = &said[i], &said[i]
		if i > 0 {
			time.Sleep(apart)
		}
		if err := commands[i].Start(); err != nil {
			return err
		}
	}
	failed := 0
	for i, command := range commands {
		if err := command.Wait(); err != nil {
			failed++
			if text := said[i].String(); !strings.Contains(text, "another mpsforge") && !strings.Contains(text, build.ErrBuilding.Error()) {
				return fmt.Errorf("it fails beside another: %w: %s", err, text)
			}
		}
	}
	if failed == 2 {
		return fmt.Errorf("both fail: %s%s", &said[0], &said[1])
	}
	now, err := k.files()
	if err == nil && !maps.Equal(now, k.after) {
		err = errors.New(differences(k.before, now, k.after))
	}
	if err != nil {
		return err
	}
	return k.look()
}
