// The allocator: blocks of memory with the stamps of their last uses (rules 16 and 17).
#ifndef MPSFORGE_NATIVE_POOL_MEMORY_H
#define MPSFORGE_NATIVE_POOL_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "../schedule/sync.h"
#include "streams.h"

namespace mpsforge::pool {

struct Stamp {
  uint32_t stream;
  uint64_t position;
};

// One position a stream: the latest.
using Positions = std::map<uint32_t, uint64_t>;

void raise(Positions& positions, const Stamp& stamp);

// A Metal buffer of a size class. All but what is constant is guarded by Memory's mutex.
struct Block {
  const std::shared_ptr<mpsforge_metal_buffer> buffer;
  const size_t bytes;
  const uint32_t storage;
  uint32_t owner;  // the stream that it was last given to
  // Of a block in use: nothing while it has no stamp, and it then counts as written and used by its owner up to now.
  std::optional<Stamp> written = std::nullopt;
  Positions used = {};                   // since it was written; of a free block: all that must be complete
  std::set<uint32_t> recorded = {};      // streams of record_stream
  std::map<uint32_t, int> reading = {};  // operators in flight by stream, see hand_over.h
  std::map<uint32_t, int> writing = {};
};

class Memory {
 public:
  Memory(const Backend& backend, Streams& streams);
  ~Memory();  // all blocks have been given back

  // A block for use on the stream; its content is undefined. for_cpu: shared memory that the CPU may write at once.
  // Throws Failure if there is none.
  Block* take(const Stream& stream, size_t bytes, bool for_cpu);
  // What a deleter does: no stream call, no wait, no lease. By any thread, on any queue.
  void give_back(Block* block);
  void record_stream(Block* block, uint32_t stream);
  // Completes all work and gives free blocks back to Metal. May throw as Streams::synchronize_device.
  void reclaim();

  uint64_t reused();
  uint64_t allocated();

  // Rule 11: a leaf. Nothing of a stream or of Metal is called while it is held, but for the reading of a position.
  sync::Mutex mutex;

 private:
  Block* find(const Stream& stream, size_t bytes, bool for_cpu);
  bool complete(const Block& block, const std::vector<uint64_t>& completed) const;

  const Backend backend_;
  Streams& streams_;
  std::list<std::unique_ptr<Block>> free_;  // the rest is guarded by the mutex; latest freed first
  uint64_t reused_ = 0;
  uint64_t allocated_ = 0;  // bytes
};

}  // namespace mpsforge::pool

#endif
