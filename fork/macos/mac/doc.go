// Package mac compiles the MPS sources of a checkout for arm64 macOS on Linux, links them with the libraries of PyTorch's own wheel for
// the Mac, and reads what comes of it. Nothing of it runs: a Mac would be needed for that.
//
// Clang and the linker are those of host builds (package host). Apple's open headers, libc++'s and libSystem's stub come from the wheel
// of ziglang, Metal's and Foundation's are native/objc/include with native/mac/include before them, and each other library of the
// system is a stub made of the names that PyTorch's wheel binds to.
package mac
