//go:build !linux

package main

import (
	"errors"
	"time"
)

func layer() error                         { return errNoMount{errors.New("only on Linux")} }
func unmountAll()                          {}
func (*killing) onDisk(int) error          { return errNoMount{errors.New("only on Linux")} }
func (*killing) twice(time.Duration) error { return errors.New("only on Linux") }
