// Package shaders makes PyTorch's own Metal kernels run on this machine's processor: it takes the Metal libraries out of PyTorch's
// wheel for macOS, whose kernels are LLVM code, changes that text so that every access is checked and every name of Metal has a
// body, and has clang compile it. What runs them is in native/shaders; host builds link the result.
package shaders
