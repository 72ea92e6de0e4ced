// Package pool holds the reference stream pool: the plainest implementation of the pool's semantics, as the judge of
// others. It is C++ alone: programs import it to have it linked.
package pool

// #cgo CXXFLAGS: -std=c++17 -O2 -Wall -Wextra
import "C"
