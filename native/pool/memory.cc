#include "memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "failure.h"

namespace mpsforge::pool {
namespace {

// Classes are powers of two from this size up, so that blocks of nearly equal tensors can take each other's place. Any
// size would do: it is a multiple of what Metal aligns bindings to.
constexpr size_t smallest_class = 256;

size_t size_class(size_t bytes) {
  size_t result = smallest_class;
  while (result < bytes) {
    if (result > SIZE_MAX / 2) throw Failure("out of memory: no buffer has " + std::to_string(bytes) + " bytes");
    result *= 2;
  }
  return result;
}

}  // namespace

void raise(Positions& positions, const Stamp& stamp) {
  uint64_t& position = positions[stamp.stream];
  position = std::max(position, stamp.position);
}

Memory::Memory(const Backend& backend, Streams& streams, Fences& fences)
    : backend_(backend), streams_(streams), fences_(fences) {}

Memory::~Memory() = default;

Block* Memory::take(const Stream& stream, size_t bytes, bool for_cpu) {
  const size_t size = size_class(bytes);
  if (Block* block = find(stream, size, for_cpu)) return block;
  const uint32_t storage = for_cpu ? MPSFORGE_METAL_SHARED : MPSFORGE_METAL_PRIVATE;
  auto create = [&] { return backend_.metal.buffer_create(backend_.device, size, storage, "tensor"); };
  mpsforge_metal_buffer* buffer = create();
  if (!buffer) {
    // Rule 17: before giving up, blocks of all streams.
    reclaim();
    buffer = create();
  }
  if (!buffer) throw Failure("out of memory: Metal gives no buffer of " + std::to_string(size) + " bytes");
  const sync::Lock lock(mutex_);
  allocated_ += size;
  return new Block{owned(buffer, backend_.metal.buffer_release), size, storage, ++addresses_, stream.id()};
}

// Guard rule 5. As new: it has no stamp, and so counts as used by its owner up to now. That covers the owner's own
// earlier uses, which may be incomplete, should another stream be handed the block before its owner has written it.
void Memory::clear_records(Block& block) {
  block.written.reset();
  block.used.clear();
  block.freed = false;
}

// Rule 17: a block of the stream's own at once, unless another stream's use of it is incomplete; any other only when
// all is complete. Memory that the CPU writes next must be complete in both cases, because the CPU is in no queue.
Block* Memory::find(const Stream& stream, size_t bytes, bool for_cpu) {
  // Read on this thread, which encodes next or lets the CPU write: what it has seen complete is ordered before that.
  // The values only rise, so they may be old.
  const std::vector<uint64_t> completed = streams_.completed();
  const uint32_t storage = for_cpu ? MPSFORGE_METAL_SHARED : MPSFORGE_METAL_PRIVATE;
  std::unique_ptr<Block> found;
  Positions incomplete;
  {
    const sync::Lock lock(mutex_);
    auto choice = free_.end();
    for (auto candidate = free_.begin(); candidate != free_.end(); ++candidate) {
      const Block& block = **candidate;
      if (block.bytes != bytes || block.storage != storage) continue;
      const bool own = block.owner == stream.id();
      if (!own && choice != free_.end()) continue;
      bool usable = true;
      for (const auto& [id, position] : block.used) {
        if (completed[id] >= position || (own && !for_cpu && id == stream.id())) continue;
        usable = false;
        if (own) raise(incomplete, {id, position});
      }
      if (!usable) continue;
      choice = candidate;
      if (own) break;
    }
    if (choice != free_.end()) {
      found = std::move(*choice);
      free_.erase(choice);
      ++reused_;
      found->owner = stream.id();
      clear_records(*found);
    }
  }
  if (found) {
    backend_.metal.order_acquire(backend_.device, found.get());
    backend_.metal.buffer_note(found->buffer.get(), 0, bytes,
                               ("given out again to stream " + std::to_string(stream.id())).c_str());
    return found.release();
  }
  // A use in an open command buffer of an idle thread would stay incomplete for ever, and memory would grow with every
  // tensor that such a thread was handed. Closing it is what lets the next search find the block. Other streams' own
  // blocks are no reason to disturb them, and the stream's own work is left alone: it makes the same commits as without
  // this (rule 27).
  if (!Stream::here()) {
    for (const auto& [id, position] : incomplete) {
      Stream* other = streams_.find(id);
      if (other == &stream || other->committed() >= position) continue;
      other->run([&, position = position] { other->close_up_to(position); });
    }
  }
  return nullptr;
}

void Memory::give_back(Block* block) {
  const uint64_t now = streams_.enqueued(block->owner);
  backend_.metal.buffer_note(
      block->buffer.get(), 0, block->bytes,
      ("freed by stream " + std::to_string(block->owner) + " position " + std::to_string(now)).c_str());
  // The mutexes below order this thread's CPU accesses before those of the thread that takes the block.
  backend_.metal.order_release(backend_.device, block);
  {
    const sync::Lock lock(shard(*block).mutex);
    if (block->pins > 0) {
      block->freed = true;
      return;
    }
  }
  bury(block);
}

void Memory::bury(Block* block) {
  const sync::Lock lock(mutex_);
  ++block->ends;
  if (block->written) raise(block->used, *block->written);
  // The owner may have used it without a stamp: while it was the only stream, or on its queue.
  raise(block->used, {block->owner, streams_.enqueued(block->owner)});
  for (const Fences::Work& work : fences_.all()) raise(block->used, {work.stream, work.position});
  // Rule 17, record_stream: up to now, as the caller said that the stream uses it until it is freed.
  for (const uint32_t id : block->recorded) raise(block->used, {id, streams_.enqueued(id)});
  block->recorded.clear();
  free_.push_front(std::unique_ptr<Block>(block));
}

void Memory::record_stream(Block* block, uint32_t stream) {
  const sync::Lock lock(shard(*block).mutex);
  block->recorded.insert(stream);
}

void Memory::reclaim() {
  streams_.synchronize_device();
  const std::vector<uint64_t> completed = streams_.completed();
  std::list<std::unique_ptr<Block>> reclaimed;
  {
    const sync::Lock lock(mutex_);
    for (auto block = free_.begin(); block != free_.end();) {
      const auto next = std::next(block);
      if (complete(**block, completed)) {
        allocated_ -= (*block)->bytes;
        reclaimed.splice(reclaimed.end(), free_, block);
      }
      block = next;
    }
  }
  for (const auto& block : reclaimed) {
    backend_.metal.order_acquire(backend_.device, block.get());
    block->buffer.reset();
  }
  const sync::Lock lock(mutex_);
  retired_.splice(retired_.end(), reclaimed);
}

bool Memory::complete(const Block& block, const std::vector<uint64_t>& completed) const {
  return std::all_of(block.used.begin(), block.used.end(),
                     [&](const auto& use) { return completed[use.first] >= use.second; });
}

uint64_t Memory::reused() {
  const sync::Lock lock(mutex_);
  return reused_;
}

uint64_t Memory::allocated() {
  const sync::Lock lock(mutex_);
  return allocated_;
}

}  // namespace mpsforge::pool
