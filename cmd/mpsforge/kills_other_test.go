//go:build !linux

package main

import "errors"

func layer() error                { return errNoMount{errors.New("only on Linux")} }
func unmountAll()                 {}
func (*killing) onDisk(int) error { return errNoMount{errors.New("only on Linux")} }
func (*killing) twice() error     { return errors.New("only on Linux") }
