//go:build !(darwin || freebsd || netbsd || openbsd)

package main

import (
	"os"
	"syscall"
)

// statusSignals ask for the status.
var statusSignals = []os.Signal{syscall.SIGUSR1}
