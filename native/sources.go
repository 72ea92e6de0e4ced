// Package native holds the C++ side of the verification: the reference slot allocator, the harness that drives it and
// any subject from many threads, and the sources of the programs that are compiled at verify time.
package native

import "embed"

// Sources holds the C++ sources of this folder and of its sub-folders stress and schedule, which are not part of the
// Go build: verification compiles them together with the code under test.
//
//go:embed *.h *.cc stress/*.cc schedule/*.h schedule/*.cc
var Sources embed.FS
