// What nearly all sources here include that see none of a checkout's headers, compiled once for all of them
// (fork/hostbuild/host/prefix.go).
#include <ATen/ATen.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <torch/library.h>
