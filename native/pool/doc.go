// Package pool holds the reference stream pool: the plainest implementation of the pool's semantics, as the judge of
// others. It is C++ alone: programs import it to have it linked.
package pool

// #cgo CXXFLAGS: -std=c++17 -O2 -Wall -Wextra
import "C"

import (
	"embed"

	_ "mpsforge/native/metal"    // its headers are included
	_ "mpsforge/native/schedule" // and its
)

// Headers makes Go's build cache see the headers here from other packages; see package native.
//
//go:embed *.h
var Headers embed.FS
