//go:build !cgo

// Package script runs programs in a small language over the software Metal and the reference pool.
package script

// Run returns ErrNoCgo.
func Run(string, Options) (*Result, error) { return nil, ErrNoCgo }
