// Dispatch data in one piece, and the counting of all dispatch objects.
#include <cstdlib>
#include <cstring>

#include "objects.h"

using mpsforge::objc::checked;

namespace {

void free_nothing() {}

}  // namespace

struct dispatch_data_s final : mpsforge::objc::DispatchObject {
  dispatch_data_s(const void* bytes, size_t size, dispatch_queue_t queue, dispatch_block_t destructor)
      : DispatchObject("data"), size(size), queue(queue) {
    if (destructor == DISPATCH_DATA_DESTRUCTOR_DEFAULT) {
      void* copy = std::malloc(size ? size : 1);
      if (!copy) mpsforge::objc::fail("no memory for dispatch data of %zu bytes", size);
      if (size > 0) std::memcpy(copy, bytes, size);
      owned = copy;
      this->bytes = copy;
      return;
    }
    this->bytes = bytes;
    if (destructor == DISPATCH_DATA_DESTRUCTOR_FREE) {
      owned = const_cast<void*>(bytes);
      return;
    }
    block = reinterpret_cast<dispatch_block_t>(_Block_copy(static_cast<void*>(destructor)));
    if (queue) queue->retain();
  }

  ~dispatch_data_s() override {
    std::free(owned);
    if (!block) return;
    if (!queue) (queue = dispatch_get_global_queue(0, 0))->retain();
    // The main queue has nobody to run it.
    if (queue->kind == dispatch_queue_s::Kind::kMain) {
      _Block_release(static_cast<void*>(block));
    } else {
      dispatch_async_f(queue, static_cast<void*>(block), mpsforge::objc::call_and_release_block);
    }
    queue->release();
  }

  const void* bytes = nullptr;
  const size_t size;
  void* owned = nullptr;
  dispatch_queue_t queue;
  dispatch_block_t block = nullptr;
};

extern "C" {

const dispatch_block_t _dispatch_data_destructor_free = ^{
  free_nothing();
};

dispatch_data_t dispatch_data_create(const void* bytes, size_t size, dispatch_queue_t queue,
                                     dispatch_block_t destructor) {
  return new dispatch_data_s(bytes, size, queue, destructor);
}

dispatch_data_t dispatch_data_create_map(dispatch_data_t data, const void** bytes, size_t* size) {
  checked(data, "dispatch_data_create_map")->retain();
  if (bytes) *bytes = data->bytes;
  if (size) *size = data->size;
  return data;
}

size_t dispatch_data_get_size(dispatch_data_t data) { return data ? data->size : 0; }

void mpsforge_dispatch_retain(void* object) {
  static_cast<mpsforge::objc::DispatchObject*>(checked(object, "dispatch_retain"))->retain();
}

void mpsforge_dispatch_release(void* object) {
  static_cast<mpsforge::objc::DispatchObject*>(checked(object, "dispatch_release"))->release();
}

}  // extern "C"
