// What nearly all sources of the MPS backend include, compiled once for all of them (fork/hostbuild/host/prefix.go).
#include <ATen/native/mps/OperationUtils.h>
