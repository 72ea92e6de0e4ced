#include "hand_over.h"

namespace mpsforge::pool {

void HandOver::perform(Stream& stream, const Uses& uses, const std::function<void()>& encode) noexcept {
  if (Stream::here()) {  // nested in a block: takes no part
    encode();
    return;
  }
  if (!streams_.tracking()) {
    bool encoded = false;
    stream.run([&] {
      if (streams_.tracking()) return;
      encode();
      encoded = true;
    });
    if (encoded) return;
  }
  const Positions needed = enter(stream, uses);
  order(stream, needed);
  uint64_t position = 0;
  stream.run([&] {
    encode();
    position = stream.enqueued();
  });
  exit(stream, uses, needed, position);
}

Positions HandOver::enter(const Stream& stream, const Uses& uses) {
  sync::Lock lock(memory_.mutex);
  exited_.wait(lock, [&] { return !conflicts(stream, uses); });
  for (const auto& [block, writes] : uses) ++(writes ? block->writing : block->reading)[stream.id()];
  return collect(stream, uses);
}

// Operators of one stream need no such care: their queue orders them.
bool HandOver::conflicts(const Stream& stream, const Uses& uses) {
  auto foreign = [&](const std::map<uint32_t, int>& in_flight) {
    return in_flight.size() > in_flight.count(stream.id());
  };
  for (const auto& [block, writes] : uses) {
    if (foreign(block->writing) || (writes && foreign(block->reading))) return true;
  }
  return false;
}

Positions HandOver::collect(const Stream& stream, const Uses& uses) {
  Positions needed;
  for (const auto& [block, writes] : uses) {
    if (!block->written && block->owner != stream.id()) {
      // Pinned, so that many streams which read the same weights wait once, however busy the owner is.
      block->written = Stamp{block->owner, streams_.enqueued(block->owner)};
      raise(block->used, *block->written);
    }
    if (block->written) raise(needed, *block->written);
    if (!writes) continue;
    for (const auto& [id, position] : block->used) raise(needed, {id, position});
  }
  needed.erase(stream.id());
  return needed;
}

void HandOver::order(Stream& stream, Positions needed) {
  if (needed.empty()) return;
  bool unseen = false;
  stream.run([&] {
    for (auto entry = needed.begin(); entry != needed.end();) {
      // Position 0 is before all work. The table is the queue's own: another thread that shares the stream may have
      // encoded the same wait.
      const bool seen = entry->second == 0 || stream.has_seen(streams_.at(entry->first), entry->second);
      entry = seen ? needed.erase(entry) : std::next(entry);
    }
    unseen = !needed.empty();
    // So that others need not wait, through this command buffer, for what is waited for here.
    if (unseen) stream.close();
  });
  if (!unseen) return;
  for (const auto& [id, position] : needed) {
    Stream& other = streams_.at(id);
    other.run([&, position = position] { other.close_up_to(position); });
  }
  stream.run([&] {
    for (const auto& [id, position] : needed) {
      const Stream& other = streams_.at(id);
      if (stream.has_seen(other, position)) continue;
      stream.order_after(other, position);
      ++waits_;
    }
  });
}

void HandOver::exit(const Stream& stream, const Uses& uses, const Positions& waited, uint64_t position) {
  const sync::Lock lock(memory_.mutex);
  const Stamp stamp{stream.id(), position};
  for (const auto& [block, writes] : uses) {
    auto& in_flight = writes ? block->writing : block->reading;
    if (--in_flight[stream.id()] == 0) in_flight.erase(stream.id());
    if (!writes) {
      raise(block->used, stamp);
      continue;
    }
    // Two threads that share the stream may come here in another order than their blocks ran.
    if (!block->written || block->written->stream != stamp.stream || block->written->position < position) {
      block->written = stamp;
    }
    // Only uses that this write comes after: a later one of the same stream may have been stamped already.
    for (auto use = block->used.begin(); use != block->used.end();) {
      const auto covered = waited.find(use->first);
      const bool before = use->first == stamp.stream ? use->second <= position
                                                     : covered != waited.end() && use->second <= covered->second;
      use = before ? block->used.erase(use) : std::next(use);
    }
  }
  exited_.notify_all();
}

}  // namespace mpsforge::pool
