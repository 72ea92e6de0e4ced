// What tests and measurements of translated kernels share.
#ifndef MPSFORGE_NATIVE_OBJC_TESTS_SHADERS_LAUNCH_H
#define MPSFORGE_NATIVE_OBJC_TESTS_SHADERS_LAUNCH_H

#import <Metal/Metal.h>
#include <dispatch/dispatch.h>

#include <cstring>

#include "harness.h"

namespace mpsforge::objc::test {

inline id<MTLDevice> device() {
  static id<MTLDevice> const made = MTLCreateSystemDefaultDevice();
  return made;
}

inline id<MTLBuffer> shared_buffer(NSUInteger length) {
  return [device() newBufferWithLength:length options:MTLResourceStorageModeShared];
}

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

#endif
