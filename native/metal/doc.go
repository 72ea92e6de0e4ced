// Package metal holds the software Metal: an engine that runs command buffers on the CPU, raises Metal's own assertions
// and checks that accesses of GPU memory are ordered. On macOS it also holds the same C ABI over Apple's framework,
// in Objective-C, which has not been run yet. There is no Go in it: programs import it to have it linked.
package metal

// #cgo CXXFLAGS: -std=c++17 -O2 -Wall -Wextra
// #cgo darwin CFLAGS: -fobjc-arc -Wall -Wextra
// #cgo darwin LDFLAGS: -framework Foundation -framework CoreGraphics -framework Metal -framework MetalPerformanceShaders -framework MetalPerformanceShadersGraph
import "C"

import (
	"embed"

	_ "mpsforge/native/schedule" // its headers are included
)

// Headers makes Go's build cache see the headers here from other packages; see package native.
//
//go:embed *.h
var Headers embed.FS
