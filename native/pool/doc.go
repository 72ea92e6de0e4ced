// Package pool holds the reference stream pool: the plainest implementation of the pool's semantics, as the judge of
// others. It is C++ alone: programs import it to have it linked. Compiled against ABI 2 of metal.h: go's cache does not see
// that header change, so the number is to be changed here with it.
package pool

// #cgo CXXFLAGS: -std=c++17 -O2 -Wall -Wextra
import "C"
