#include "caches.h"

#include <utility>

namespace mpsforge::pool {

ObjectCache::~ObjectCache() { clear(); }

std::shared_ptr<mpsforge_metal_mps_kernel> ObjectCache::take(const std::string& key) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if ((*entry)->used || (*entry)->key != key) continue;
      (*entry)->used = true;
      entries_.splice(entries_.begin(), entries_, entry);
      return lend(*entry);
    }
  }
  const auto made =
      std::make_shared<Entry>(Entry{key, backend_.metal.mps_create(backend_.device, class_, key.c_str())});
  Entries unused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.push_front(made);
    ++alive_;
    trim(unused);
  }
  release(unused);
  return lend(made);
}

std::shared_ptr<mpsforge_metal_mps_kernel> ObjectCache::lend(const std::shared_ptr<Entry>& entry) {
  return {entry->object, [this, entry](mpsforge_metal_mps_kernel*) { give_back(entry); }};
}

void ObjectCache::give_back(const std::shared_ptr<Entry>& entry) {
  Entries unused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entry->used = false;
    if (entry->kept) {
      trim(unused);
    } else {
      unused.push_back(entry);
    }
  }
  release(unused);
}

void ObjectCache::clear() {
  Entries unused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& entry : std::exchange(entries_, {})) {
      entry->kept = false;
      if (!entry->used) unused.push_back(entry);
    }
  }
  release(unused);
}

uint64_t ObjectCache::alive() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return alive_;
}

// With the lock held.
void ObjectCache::trim(Entries& unused) {
  for (auto next = entries_.end(); limit_ > 0 && entries_.size() > limit_ && next != entries_.begin();) {
    const auto entry = std::prev(next);
    if ((*entry)->used) {
      next = entry;
    } else {
      (*entry)->kept = false;
      unused.splice(unused.end(), entries_, entry);
    }
  }
}

void ObjectCache::release(const Entries& unused) {
  for (const auto& entry : unused) backend_.metal.mps_release(entry->object);
  const std::lock_guard<std::mutex> lock(mutex_);
  alive_ -= unused.size();
}

}  // namespace mpsforge::pool
