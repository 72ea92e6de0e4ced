#include "guard.h"

#include <algorithm>
#include <map>

#include "reference.h"

namespace mpsforge::pool {
namespace {

// A plain pointer, so that it can be read for as long as the thread runs (rule 24).
thread_local Guard* innermost = nullptr;

}  // namespace

Guard::Guard(mpsforge_pool& pool, const Uses& uses)
    : gil_(std::in_place, pool.config),
      pool_(pool),
      stream_(pool.working_stream()),
      outer_(innermost),
      on_queue_(Stream::here() != nullptr) {
  innermost = this;
  if (on_queue_) return;  // what it uses is covered by the guard around the block, or fresh, or fenced
  for (const auto& [block, writes] : uses) {
    const auto same = std::find_if(uses_.begin(), uses_.end(), [b = block](const Use& use) { return use.block == b; });
    if (same == uses_.end()) {
      uses_.push_back({block, writes, block->ends});
    } else {
      same->writes |= writes;
    }
  }
  pool_.fences.settle();
  enter_inside();
}

Guard::~Guard() {
  leave();
  innermost = outer_;
  gil_.reset();  // last of all: nobody waits for a lock whose holder waits for the GIL
}

Guard::Group Guard::active_guards() {
  Group group;
  for (Guard* guard = innermost; guard; guard = guard->outer_) {
    if (guard->active_) group.insert(group.begin(), guard);
  }
  return group;
}

// Guard rule 8.
void Guard::enter_inside() {
  Group outer = active_guards();
  if (!outer.empty()) {
    several_ = outer.front()->several_;
    active_ = !several_ || try_enter(outer);
    if (active_) return;
    suspend(outer);
    suspended_ = std::move(outer);
  }
  enter({this});
}

// Decides what the guard holds: what it uses, but for what the guards further out hold for it. Those are active, or
// suspended and about to go on together with this one; they then take a lock once, as strong as any of them needs it.
void Guard::plan(const Group& outer, bool together) {
  holds_.clear();
  for (Use& use : uses_) {
    // Freed inside while there was one stream, and suspended then, with no pin to keep it.
    if (use.block->ends != use.ends) continue;
    Hold* same_stream = nullptr;
    bool elsewhere = false;
    for (Guard* guard : outer) {
      Hold* const hold = guard->holder(use.block);
      if (hold && &guard->stream_ == &stream_) same_stream = hold;
      if (hold && &guard->stream_ != &stream_) elsewhere = true;
    }
    if (same_stream && together) same_stream->writes |= use.writes;
    if (same_stream && (same_stream->writes || !use.writes)) continue;
    holds_.push_back({&use, use.writes, !(together && elsewhere)});
  }
}

Guard::Hold* Guard::holder(const Block* block) {
  const auto hold = std::find_if(holds_.begin(), holds_.end(), [&](const Hold& h) { return h.use->block == block; });
  return hold == holds_.end() ? nullptr : &*hold;
}

// Enters beside the active guards if no lock has to be waited for. On false nothing has changed.
bool Guard::try_enter(const Group& outer) {
  plan(outer, false);
  Positions needed;
  for (size_t i = 0; i < holds_.size(); ++i) {
    if (take(holds_[i], false, needed)) continue;
    holds_.resize(i);
    drop_all(0, true);
    return false;
  }
  pool_.guards.order(stream_, needed);
  return true;
}

// Guard rules 2 to 4, of guards that begin or go on.
void Guard::enter(const Group& group) {
  Guard& first = *group.front();
  Announcements& announcements = first.pool_.announcements;
  first.announced_ = announcements.announce();
  const bool several = announcements.several();
  for (Guard* guard : group) {
    guard->several_ = several;
    guard->active_ = true;
  }
  if (!several) return;
  std::vector<std::pair<Guard*, const Hold*>> all;
  for (size_t i = 0; i < group.size(); ++i) group[i]->plan({group.begin(), group.begin() + static_cast<long>(i)}, true);
  for (Guard* guard : group) {
    for (const Hold& hold : guard->holds_) all.emplace_back(guard, &hold);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second->use->block->address < b.second->use->block->address;
  });
  std::map<uint32_t, Positions> needed;
  for (const auto& [guard, hold] : all) guard->take(*hold, true, needed[guard->stream_.id()]);
  for (Guard* guard : group) guard->pool_.guards.order(guard->stream_, needed[guard->stream_.id()]);
}

// Guard rules 3 to 5, of one block. False if it must not wait and would have to.
bool Guard::take(const Hold& hold, bool waits, Positions& needed) {
  Block& block = *hold.use->block;
  Shard& shard = pool_.memory.shard(block);
  sync::Lock lock(shard.mutex);
  if (hold.locked && !waits) {
    if (!block.lock.try_enter(hold.writes)) return false;
  } else if (hold.locked) {
    const uint32_t ticket = block.lock.arrive(hold.writes);
    while (!block.lock.may_enter(ticket, hold.writes)) {
      sync::note("for-buffer");
      shard.changed.wait(lock);
    }
    pool_.guards.overtakes_ += block.lock.enter(ticket, hold.writes);
    shard.changed.notify_all();
  }
  if (!hold.use->pinned) ++block.pins;
  hold.use->pinned = true;
  if (!block.written && block.owner != stream_.id()) {
    // Pinned to the position, so that many streams which read the same weights wait once, however busy the owner is.
    block.written = Stamp{block.owner, pool_.streams.enqueued(block.owner)};
    raise(block.used, *block.written);
  }
  if (block.written) raise(needed, *block.written);
  if (!hold.writes) return true;
  for (const auto& [id, position] : block.used) raise(needed, {id, position});
  return true;
}

// Guard rule 6. Position 0: nothing has been done.
void Guard::drop_all(uint64_t position, bool last) noexcept {
  for (const Hold& hold : holds_) {
    Block& block = *hold.use->block;
    Shard& shard = pool_.memory.shard(block);
    bool bury = false;
    {
      const sync::Lock lock(shard.mutex);
      if (position != 0) record(block, hold.writes, {stream_.id(), position});
      if (hold.locked) block.lock.leave();
      shard.changed.notify_all();
      if (last) bury = Memory::unpin(block);
      if (last) hold.use->pinned = false;
    }
    if (bury) pool_.memory.bury(&block);
  }
  holds_.clear();
}

// A write comes after all uses so far: its lock kept others out since they were collected.
void Guard::record(Block& block, bool writes, const Stamp& stamp) {
  if (writes) {
    block.written = stamp;
    block.used.clear();
  } else {
    raise(block.used, stamp);
  }
}

void Guard::suspend(const Group& group) noexcept {
  for (Guard* guard : group) {
    guard->drop_all(guard->stream_.enqueued(), false);
    guard->active_ = false;
  }
  group.front()->retract();
}

void Guard::retract() noexcept {
  if (announced_ != 0) pool_.announcements.retract(announced_);
  announced_ = 0;
}

void Guard::leave() noexcept {
  if (on_queue_) return;
  drop_all(stream_.enqueued(), true);
  active_ = false;
  retract();
  if (!suspended_.empty()) enter(suspended_);
}

void Guard::suspended(mpsforge_pool& pool, const std::function<void()>& function) {
  const Group group = Stream::here() ? Group{} : active_guards();
  if (!group.empty()) suspend(group);
  function();
  if (group.empty()) return;
  const Blocking gil(pool.config);
  enter(group);
}

void Guards::fence(Stream& stream) {
  if (Stream::here() || Guard::here()) return;
  fences_.open(stream.id());
  order_after_all(stream);
}

void Guards::order_after_all(Stream& stream) {
  if (!announcements_.several()) return;
  Positions needed;
  for (const Stream* other : streams_.live()) raise(needed, {other->id(), other->enqueued()});
  order(stream, needed);
}

void Guards::add_unknown(Positions& needed) {
  for (const Fences::Work& work : fences_.all()) {
    raise(needed, {work.stream, work.position});
    if (!work.open) continue;
    // On the queue, so that it covers the whole of a block that is under way.
    Stream& other = streams_.at(work.stream);
    other.run([&] { raise(needed, {other.id(), other.enqueued()}); });
  }
}

// Guard rule 4. No deadlock: a block on a queue never waits for another queue, so a close always runs; and a GPU wait
// names a signal that is already committed, so the GPU's waits point backwards in the order of commits.
void Guards::order(Stream& stream, Positions needed) {
  add_unknown(needed);
  needed.erase(stream.id());
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

}  // namespace mpsforge::pool
