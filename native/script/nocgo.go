//go:build !cgo

// Package script runs programs in a small language over the software Metal and the reference pool.
package script

import "context"

// Run returns ErrNoCgo.
func Run(context.Context, string, Options) (*Result, error) { return nil, ErrNoCgo }
