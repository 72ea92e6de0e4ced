// Package schedule holds the deterministic scheduler and the threads, mutexes and conditions that it decides over. It is C++
// alone: programs import it to have it linked.
package schedule

// #cgo CXXFLAGS: -std=c++17 -O2 -Wall -Wextra
import "C"

import "embed"

// Headers makes Go's build cache see the headers here from other packages; see package native.
//
//go:embed *.h
var Headers embed.FS
