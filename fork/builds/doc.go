// Package builds holds what builds of PyTorch (package build) and host builds (package host) share: the stamp that every artefact
// carries and that says from which tree and series it came, flavours, digests of files, and errors.
package builds
