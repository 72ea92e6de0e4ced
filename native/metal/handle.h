// The objects behind the C pointers, and the list of those that the program has not released.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace mpsforge::metal {

enum class HandleKind { Buffer, Queue, CommandBuffer, Encoder, Event, SerialQueue, Kernel };
constexpr size_t kHandleKinds = 7;

class Handle {
 public:
  explicit Handle(HandleKind kind) : kind(kind) {}
  virtual ~Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  virtual std::string label() const = 0;

  const HandleKind kind;
  uint64_t number = 0;  // among those of its device
};

// Has its own lock, so that creating and releasing what nobody waits for is no scheduling point.
class Handles {
 public:
  template <class T>
  T* add(T* handle) {
    insert(handle);
    return handle;
  }
  void remove(const Handle* handle);
  // One sentence for every kind of which there are any.
  std::vector<std::string> left() const;

 private:
  void insert(Handle* handle);

  mutable std::mutex mutex_;
  uint64_t added_ = 0;
  std::array<std::map<uint64_t, const Handle*>, kHandleKinds> kept_;  // by number, so that reports repeat
};

}  // namespace mpsforge::metal
