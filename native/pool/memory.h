// The allocator: blocks of memory with the records of their last uses (rules 16 and 17) and the locks of guards.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "../schedule/sync.h"
#include "buffer_lock.h"
#include "fences.h"
#include "streams.h"

namespace mpsforge::pool {

struct Stamp {
  uint32_t stream;
  uint64_t position;
};

// One position a stream: the latest.
using Positions = std::map<uint32_t, uint64_t>;

void raise(Positions& positions, const Stamp& stamp);

// A Metal buffer of a size class.
struct Block {
  std::shared_ptr<mpsforge_metal_buffer> buffer;  // nullptr once it has gone back to Metal
  const size_t bytes;
  const uint32_t storage;
  const uint64_t address;  // replaces the buffer's: no two are equal, and a run's are those of its repetition
  uint32_t owner;          // the stream that it was last given to; constant while it is in use
  // Of a block in use the rest is guarded by its shard, of a free one by Memory's mutex.
  // Of a block in use: nothing while it has no stamp, and it then counts as written and used by its owner up to now.
  std::optional<Stamp> written = std::nullopt;
  Positions used = {};               // since it was written; of a free block: all that must be complete
  std::set<uint32_t> recorded = {};  // streams of record_stream
  BufferLock lock = {};
  uint32_t pins = 0;              // guards that use it
  bool freed = false;             // it goes back with its last pin
  std::atomic<uint64_t> ends{0};  // how often it has been freed
};

// Guards the locks and records of the blocks whose address falls to it.
struct Shard {
  sync::Mutex mutex;
  sync::Condition changed;
};

class Memory {
 public:
  Memory(const Backend& backend, Streams& streams, Fences& fences);
  ~Memory();  // all blocks have been given back

  // A block for use on the stream; its content is undefined. for_cpu: shared memory that the CPU may write at once.
  // Throws Failure if there is none.
  Block* take(const Stream& stream, size_t bytes, bool for_cpu);
  // What a deleter does: no stream call, no wait, no lease. By any thread, on any queue.
  void give_back(Block* block);
  Shard& shard(const Block& block) { return shards_[block.address % shards_.size()]; }
  // Guard rule 5, with the shard's mutex held: whether it was the last pin of a freed block. Then comes bury, without.
  static bool unpin(Block& block) { return --block.pins == 0 && block.freed; }
  void bury(Block* block);
  void record_stream(Block* block, uint32_t stream);
  // Completes all work and gives free blocks back to Metal. May throw as Streams::synchronize_device.
  void reclaim();

  uint64_t reused();
  uint64_t allocated();

 private:
  Block* find(const Stream& stream, size_t bytes, bool for_cpu);
  static void clear_records(Block& block);
  bool complete(const Block& block, const std::vector<uint64_t>& completed) const;

  const Backend backend_;
  Streams& streams_;
  Fences& fences_;
  std::array<Shard, 4> shards_;  // few, so that blocks meet in them
  // Rule 11: a leaf. Nothing of a stream or of Metal is called while it is held, but for the reading of a position.
  sync::Mutex mutex_;
  std::list<std::unique_ptr<Block>> free_;     // the rest is guarded by the mutex; latest freed first
  std::list<std::unique_ptr<Block>> retired_;  // without a buffer; a guard that is suspended may still name them
  uint64_t addresses_ = 0;
  uint64_t reused_ = 0;
  uint64_t allocated_ = 0;  // bytes
};

}  // namespace mpsforge::pool
