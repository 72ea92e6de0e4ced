#include "caches.h"

#include <utility>

namespace mpsforge::pool {

ObjectCache::ObjectCache(const Backend& backend, uint32_t mps_class, size_t limit, std::atomic<uint64_t>& alive,
                         const std::atomic<uint64_t>& generation)
    : backend_(backend),
      class_(mps_class),
      limit_(limit),
      alive_(alive),
      generation_(generation),
      own_generation_(generation) {}

std::shared_ptr<mpsforge_metal_mps_kernel> ObjectCache::find_or_create(const std::string& key) {
  const uint64_t generation = generation_;
  if (own_generation_ != generation) {
    entries_.clear();
    own_generation_ = generation;
  }
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->key != key) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->object;
  }
  mpsforge_metal_mps_kernel* made = backend_.metal.mps_create(backend_.device, class_, key.c_str());
  ++alive_;
  auto* alive = &alive_;
  auto* release = backend_.metal.mps_release;
  std::shared_ptr<mpsforge_metal_mps_kernel> object(made, [alive, release](mpsforge_metal_mps_kernel* last) {
    release(last);
    --*alive;
  });
  if (!keeps_) return object;
  entries_.push_front({key, object});
  if (limit_ > 0 && entries_.size() > limit_) entries_.pop_back();
  return object;
}

void ObjectCache::keep_nothing() {
  keeps_ = false;
  entries_.clear();
}

}  // namespace mpsforge::pool
