// Package unasked keeps the libraries of the terminal UI from asking the terminal for its background colour.
//
// bubbletea v1 asks when the program starts, whatever the command (its tea_init.go), and what the terminal answers late ends
// up in the user's shell. It does not ask where the variable CI is set (termenv's Output.isTTY). Go initialises packages by
// import path as soon as what they import is ready (go.dev/ref/spec#Program_initialization), so this one, which imports os
// alone, comes before os/signal and with it before bubbletea: it sets CI, and package tui, which comes after bubbletea,
// takes it away again. A test of the real binary on a terminal sees to it that nothing is asked.
package unasked

import "os"

const variable = "CI"

var ours = os.Getenv(variable) == "" && os.Setenv(variable, "1") == nil

// Done takes the variable away, if it was not the user's.
func Done() {
	if ours {
		_ = os.Unsetenv(variable) // it cannot fail for a name that was set
	}
}
