// What tests and measurements of translated kernels share.
#pragma once

#include <dispatch/dispatch.h>

#include <cstring>

#include "metal_scenarios.h"

namespace mpsforge::objc::test {

inline id<MTLLibrary> library_of(const char* section) {
  dispatch_data_t data = dispatch_data_create(section, std::strlen(section), dispatch_get_main_queue(),
                                              ^{
                                              });
  return [device() newLibraryWithData:data error:nil];
}

template <class T, class Value>
void fill(id<MTLBuffer> buffer, Value value) {
  auto* elements = static_cast<T*>(buffer.contents);
  for (size_t i = 0; i < buffer.length / sizeof(T); ++i) elements[i] = static_cast<T>(value(i));
}

}  // namespace mpsforge::objc::test
