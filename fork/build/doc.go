// Package build builds PyTorch's checkouts: PyTorch itself, as its own setup.py would, from a plan that is data (PyTorch,
// NewPlan); and on Linux the host build, which compiles the real sources of the MPS backend against the software Metal (Host).
// Every artefact carries a stamp that says from which tree and series it came.
package build
