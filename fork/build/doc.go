// Package build builds PyTorch's checkouts: on Linux the host build, which compiles the real sources of the MPS backend
// against the software Metal. Every artefact carries a stamp that says from which tree and series it came.
package build
