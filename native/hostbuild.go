package native

import (
	"io/fs"
)

// HostBuildSources gives the sources that a host build adds to PyTorch's: the software Metal with its Objective-C classes,
// and what stands in for PyTorch, which is the parts of the backend that a libtorch built without MPS lacks, the evaluator
// of graphs, the host versions of Metal kernels, and the program that runs scenarios.
func HostBuildSources() (layer, glue fs.FS, err error) {
	glue, err = fs.Sub(Torch, "torch")
	return Sources, glue, err
}

// OverlaySources gives what an overlay adds to the backend, and below python the package of its wheel.
func OverlaySources() (fs.FS, error) { return fs.Sub(Overlay, "overlay") }
