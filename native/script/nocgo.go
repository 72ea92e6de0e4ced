//go:build !cgo

package script

import "context"

// Run returns ErrNoCgo.
func Run(context.Context, string, Options) (*Result, error) { return nil, ErrNoCgo }

// Identity returns ErrNoCgo.
func Identity(Backend) (string, error) { return "", ErrNoCgo }
