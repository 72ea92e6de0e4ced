// PyTorch's binary on a Mac carries its shader libraries, compiled, in two sections. Here the sections only have to be
// there: kernels are found by their names (kernels.cc).
#include <mpsforge/host.h>

#include <initializer_list>

namespace {

const bool added = [] {
  static const char kEmpty[] = "no compiled shaders here";
  for (const char* section : {"metal_basic", "metal_bfloat"}) {
    mpsforge_host_add_section("__TEXT", section, kEmpty, sizeof kEmpty);
  }
  return true;
}();

}  // namespace
