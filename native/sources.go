// Package native holds the C++ side of the verification, one folder a part: schedule (threads that one scheduler can
// decide over), metal (the software Metal), pool (the reference stream pool), slots (the reference slot allocator and the
// harness for others), script (the language that drives them), programs (mains that are compiled at verify time,
// with a sanitizer or with the code under test), objc (Apple's headers and classes, for host builds), shaders (what runs
// PyTorch's Metal kernels), translate (what makes code for this machine of them, for fork/hostbuild/shaders), msl (the Metal
// Shading Language: what compiles shaders that are source at run time), torch (what host builds add to PyTorch's own
// sources), mac (headers that come first where sources are compiled for macOS), overlay (what an overlay adds to the
// backend), cuda (what takes the place of CUDA under a libtorch that was built
// for it) and apple (Apple's API as a table). apple is a Go package; metal, pool,
// slots, script and schedule are Go packages compiled by cgo.
//
// Go's build cache knows a cgo package by the files of its own folder, by the files that it embeds, and by the compiled
// packages that it imports; it does not follow #include into other folders. So a folder whose headers others include embeds
// them: a change of any header then changes the compiled package. And a package imports the package of every folder that
// its sources include from, directly or through other headers: it is then compiled again. Tests hold both.
package native

import "embed"

// Sources holds the C++ sources of the sub-folders: verification compiles them with sanitizers, or together with the
// code under test.
//
//go:embed metal/*.h metal/*.cc shaders/*.h shaders/*.cc translate/*.h translate/*.cc msl/*.h msl/*.cc all:msl/include pool/*.h pool/*.cc schedule/*.h schedule/*.cc script/*.h script/*.cc slots/*.h slots/*.cc programs/*.h programs/*.cc all:objc
var Sources embed.FS

// Torch holds, below torch/, what host builds add to the sources of PyTorch.
//
//go:embed all:torch
var Torch embed.FS

// Mac holds, below mac/include, the headers that come before those of objc/include where sources are compiled for macOS.
//
//go:embed all:mac
var Mac embed.FS

// Apple holds, below metal/, the backend on Apple's framework.
//
//go:embed metal/*.m metal/metal.h metal/framework_darwin.h
var Apple embed.FS

// Overlay holds, below overlay/, what an overlay adds to the backend: the C interface, and below overlay/python the package of the wheel.
//
//go:embed all:overlay
var Overlay embed.FS

// CUDA holds, below cuda/, what takes the place of CUDA's libraries under a libtorch that was built for them.
//
//go:embed cuda/*.h cuda/*.cc
var CUDA embed.FS
