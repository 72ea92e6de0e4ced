//go:build darwin || freebsd || netbsd || openbsd

package main

import (
	"os"
	"syscall"
)

// statusSignals ask for the status. Ctrl-T on a terminal sends SIGINFO.
var statusSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGINFO}
