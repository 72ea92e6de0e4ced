// PyTorch's binary on a Mac carries its shader libraries, compiled, in two sections. Here they hold their names, by
// which the translated kernels are found (native/objc/metal/translated.h), or, without those, the host kernels
// (kernels.cc).
#include <mpsforge/host.h>

#include <cstring>
#include <initializer_list>

namespace {

const bool added = [] {
  for (const char* section : {"metal_basic", "metal_bfloat"}) {
    mpsforge_host_add_section("__TEXT", section, section, std::strlen(section));
  }
  return true;
}();

}  // namespace
