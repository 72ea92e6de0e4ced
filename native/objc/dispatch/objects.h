// Dispatch objects: counted, each kind with an end of its own.
#pragma once

#include <dispatch/dispatch.h>

#include <atomic>
#include <string>

#include "../engine.h"

namespace mpsforge::objc {

class DispatchObject {
 public:
  explicit DispatchObject(const char* kind) : kind_(kind) {}
  virtual ~DispatchObject() = default;
  DispatchObject(const DispatchObject&) = delete;
  DispatchObject& operator=(const DispatchObject&) = delete;

  // A reference that is given back happened before the object's end; one that is taken orders nothing.
  void retain();
  void release();
  const char* kind() const { return kind_; }

 private:
  const char* kind_;
  std::atomic<long> references_{1};
};

template <typename T>
T* checked(T* object, const char* call) {
  if (!object) fail("%s: the object is NULL", call);
  return object;
}

#ifdef __BLOCKS__
inline dispatch_block_t checked_block(dispatch_block_t block, const char* call) {
  if (!block) fail("%s: the block is NULL", call);
  return block;
}
#endif

// A context of dispatch_queue_set_specific. Never taken out of its list, so that reading needs no lock.
struct Specific {
  const void* key;
  std::atomic<void*> context;
  dispatch_function_t destructor;
  Specific* next;
};

}  // namespace mpsforge::objc

struct dispatch_queue_s final : mpsforge::objc::DispatchObject {
  enum class Kind { kSerial, kConcurrent, kMain };

  dispatch_queue_s(const char* label, Kind kind);
  ~dispatch_queue_s() override;

  const std::string label;
  const Kind kind;
  mpsforge_metal_serial_queue* serial = nullptr;  // of a serial one
  dispatch_queue_s* target = nullptr;             // a serial one, or nullptr
  std::atomic<mpsforge::objc::Specific*> specifics{nullptr};
};

namespace mpsforge::objc {

// What calls without a block of their own run: a copied block.
void call_block(void* block);
void call_and_release_block(void* block);

}  // namespace mpsforge::objc
