// Package build builds PyTorch from a checkout, as its own setup.py would, from a plan that is data (PyTorch, NewPlan). Host builds
// are in package host.
package build
