// Package native holds the C++ side of the verification, one folder a part: schedule (threads that one scheduler can
// decide over), metal (the software Metal), pool (the reference stream pool), slots (the reference slot allocator and the
// harness for others), script (the language that drives them), and programs (mains that are compiled at verify time,
// with a sanitizer or with the code under test). All folders but programs are Go packages too, compiled by cgo.
package native

import "embed"

// Sources holds the C++ sources of the sub-folders: verification compiles them with sanitizers, or together with the
// code under test.
//
//go:embed */*.h */*.cc all:objc
var Sources embed.FS
