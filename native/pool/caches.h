// The objects of Apple's frameworks that one thread at a time may use (rule 19).
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "stream.h"

namespace mpsforge::pool {

// What a pool has compiled. An object is its taker's alone until the taker drops it; whoever finds none that is free
// makes another one.
class ObjectCache {
 public:
  // mps_class: of metal.h. limit: objects kept, the least recently used go first, but none in use; 0: no bound.
  ObjectCache(const Backend& backend, uint32_t mps_class, size_t limit)
      : backend_(backend), class_(mps_class), limit_(limit) {}
  ~ObjectCache();  // nothing may be in use

  std::shared_ptr<mpsforge_metal_mps_kernel> take(const std::string& key);
  // Those in use are freed when they are dropped.
  void clear();
  uint64_t alive();

 private:
  struct Entry {
    std::string key;
    mpsforge_metal_mps_kernel* object;
    bool used = true;
    bool kept = true;  // it is in entries_
  };
  using Entries = std::list<std::shared_ptr<Entry>>;

  std::shared_ptr<mpsforge_metal_mps_kernel> lend(const std::shared_ptr<Entry>& entry);
  void give_back(const std::shared_ptr<Entry>& entry);
  void trim(Entries& unused);
  void release(const Entries& unused);

  const Backend backend_;
  const uint32_t class_;
  const size_t limit_;
  std::mutex mutex_;  // guards what follows; nothing is called under it
  Entries entries_;   // most recently used first
  uint64_t alive_ = 0;
};

}  // namespace mpsforge::pool
