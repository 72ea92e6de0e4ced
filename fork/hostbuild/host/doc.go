// Package host makes host builds: on Linux, the real sources of a checkout's MPS backend compiled against the software Metal and
// linked with a libtorch of the same version (Make). What depends on PyTorch's version is data of the baseline
// (patches.HostFacts). Building PyTorch itself is package build's.
package host
