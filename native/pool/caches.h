// The objects of Apple's frameworks that only one thread may use (rule 19).
#ifndef MPSFORGE_NATIVE_POOL_CACHES_H
#define MPSFORGE_NATIVE_POOL_CACHES_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "stream.h"

namespace mpsforge::pool {

// A cache of one thread: only that thread calls it. An object is alive for as long as the cache or a caller holds it,
// so one that is evicted while in use stays for that use.
class ObjectCache {
 public:
  // mps_class: of metal.h. limit: objects kept, least recently used out first; 0: no bound. alive counts objects and
  // generation rises with each empty_cache; both must outlive the objects.
  ObjectCache(const Backend& backend, uint32_t mps_class, size_t limit, std::atomic<uint64_t>& alive,
              const std::atomic<uint64_t>& generation);

  std::shared_ptr<mpsforge_metal_mps_kernel> find_or_create(const std::string& key);
  // From now on nothing is kept: of a thread that has ended, nobody would free it.
  void keep_nothing();

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<mpsforge_metal_mps_kernel> object;
  };

  const Backend backend_;
  const uint32_t class_;
  const size_t limit_;
  std::atomic<uint64_t>& alive_;
  const std::atomic<uint64_t>& generation_;
  uint64_t own_generation_ = 0;
  bool keeps_ = true;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace mpsforge::pool

#endif
