#include "handle.h"

namespace mpsforge::metal {
namespace {

// In the order of HandleKind.
const char* const kNames[kHandleKinds] = {"buffers", "queues",        "command buffers", "encoders",
                                          "events",  "serial queues", "MPS kernels"};

// Labels that a sentence of a finding has place for.
constexpr size_t kLabels = 5;

}  // namespace

void Handles::insert(Handle* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  handle->number = ++added_;
  auto& kept = kept_[static_cast<size_t>(handle->kind)];
  kept.emplace_hint(kept.end(), handle->number, handle);
}

void Handles::remove(const Handle* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  kept_[static_cast<size_t>(handle->kind)].erase(handle->number);
}

std::vector<std::string> Handles::left() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> sentences;
  for (size_t kind = 0; kind < kHandleKinds; ++kind) {
    if (kept_[kind].empty()) continue;
    std::string text = std::to_string(kept_[kind].size()) + " " + kNames[kind] + " left behind at the device's end: ";
    size_t named = 0;
    for (const auto& [number, handle] : kept_[kind]) {
      if (named == kLabels) {
        text += ", ...";
        break;
      }
      if (named++ > 0) text += ", ";
      text += handle->label();
    }
    sentences.push_back(std::move(text));
  }
  return sentences;
}

}  // namespace mpsforge::metal
