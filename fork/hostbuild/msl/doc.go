// Package msl compiles files in Metal's shading language for this machine's processor and runs their kernels, for those who write
// kernels without a Mac: accesses outside of buffers, races of threads and results that are not numbers are findings. The compiler is
// that of host builds. What runs is native/programs/run_shader.cc, a process with limits; it is no sandbox.
package msl
