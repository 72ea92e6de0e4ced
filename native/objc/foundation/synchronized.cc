// @synchronized: a recursive lock for each object that is used so, kept while somebody holds or wants it. Locks of the
// system, so that ThreadSanitizer sees them.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "../engine.h"

namespace {

struct Entry {
  Entry() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  ~Entry() { pthread_mutex_destroy(&mutex); }
  pthread_mutex_t mutex;
  unsigned users = 0;
};

// The table's own lock must not order users of different objects, so the sanitizer looks away while it is held.
struct Table {
  std::mutex mutex;
  std::unordered_map<const void*, Entry*> entries;
};

Table& table() {
  static auto& made = *new Table;
  return made;
}

Entry* enter(const void* object) {
  mpsforge::objc::EngineCall unseen;
  Table& all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  Entry*& entry = all.entries[object];
  if (!entry) entry = new Entry;
  ++entry->users;
  return entry;
}

Entry* find(const void* object) {
  mpsforge::objc::EngineCall unseen;
  Table& all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.entries.find(object);
  return found == all.entries.end() ? nullptr : found->second;
}

void leave(const void* object, Entry* entry) {
  mpsforge::objc::EngineCall unseen;
  Table& all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (--entry->users > 0) return;
  all.entries.erase(object);
  delete entry;
}

}  // namespace

extern "C" {

int objc_sync_enter(const void* object) {
  if (!object) return 0;
  pthread_mutex_lock(&enter(object)->mutex);
  mpsforge::objc::order_acquire(object);
  return 0;
}

int objc_sync_exit(const void* object) {
  if (!object) return 0;
  Entry* entry = find(object);
  if (!entry) mpsforge::objc::fail("objc_sync_exit on %p, which nobody synchronizes on", object);
  mpsforge::objc::order_release(object);
  pthread_mutex_unlock(&entry->mutex);
  leave(object, entry);
  return 0;
}

}  // extern "C"
