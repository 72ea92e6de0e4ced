package main

import "golang.org/x/sys/unix"

// termiosRequest reads a terminal's settings.
const termiosRequest = unix.TCGETS
