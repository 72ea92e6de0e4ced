// Package shaders makes PyTorch's own Metal kernels run on this machine's processor: it takes the Metal libraries out of PyTorch's
// wheel for macOS, whose kernels are LLVM code, has native/translate change it so that every access is checked and every
// function of Metal is code, and has clang compile it. What runs them is in native/shaders; host builds link the result.
package shaders
