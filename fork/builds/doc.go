// Package builds holds what builds of PyTorch (package build) and host builds (package host) share: the stamp that every artefact
// carries and that says from which tree and series it came, flavours, how files are written and their digests, and errors.
package builds
