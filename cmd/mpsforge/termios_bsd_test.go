//go:build darwin || freebsd || netbsd || openbsd

package main

import "golang.org/x/sys/unix"

// termiosRequest reads a terminal's settings.
const termiosRequest = unix.TIOCGETA
