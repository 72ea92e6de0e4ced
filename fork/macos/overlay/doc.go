// Package overlay makes wheels that put the patched MPS backend over the one of an installed torch (docs/dev/decisions/overlay.md).
package overlay
