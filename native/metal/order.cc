#include "order.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <unordered_set>

#include "shadow.h"

namespace mpsforge::metal {
namespace {

constexpr size_t kRaces = 1000;  // kept, as order.h says

// Removed actors whose accesses still count before the oldest of them are forgotten. Only threads that ended without
// anybody's waiting for them can pile up; a clock has an entry for each, so this bounds what a release costs (2 KiB).
constexpr size_t kRetired = 256;
// Removals between two looks at all shadows for numbers that are free again.
constexpr size_t kCollectEvery = 64;

uint64_t at(const Clock& clock, Actor actor) { return actor < clock.size() ? clock[actor] : 0; }

const char* place(const Site& site) { return *site.queue ? site.queue : site.thread; }

// What makes two races the same one: buffer, and call and place of both sides in either order.
using Key = std::array<std::string, 5>;

Key key(const Race& race) {
  std::pair<std::string, std::string> first{race.first.call, place(race.first)};
  std::pair<std::string, std::string> second{race.second.call, place(race.second)};
  if (second < first) std::swap(first, second);
  return {race.buffer, std::move(first.first), std::move(first.second), std::move(second.first),
          std::move(second.second)};
}

}  // namespace

void join(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

struct Order::State {
  struct Member {
    Clock clock;           // empty once removed
    uint64_t step = 0;     // of its last access; goes on when the number is given out again
    bool released = true;  // since its last access, so that the next one is a new step
    bool live = true;
  };

  std::vector<Member> actors;
  std::vector<Actor> unused;   // numbers that nothing refers to
  std::vector<Actor> retired;  // numbers of removed actors whose accesses still count, oldest first
  size_t collect_at = kCollectEvery;
  std::vector<std::weak_ptr<Shadow>> shadows;
  size_t sweep_at = 64;  // shadows, until those of released buffers are looked for
  uint64_t notes = 0;
  std::unordered_set<std::string> texts;

  std::vector<Race> races;
  std::set<Key> known;
  uint64_t count = 0;
  void (*on_race)(void* context, const Race& race) = nullptr;
  void* on_race_context = nullptr;
  void (*on_mixed_writes)(void* context, const Race& writes) = nullptr;
  void* on_mixed_writes_context = nullptr;

  bool knows(Actor actor, const Access& access) const {
    return access.actor == actor || at(actors[actor].clock, access.actor) >= access.step;
  }

  template <class Visit>
  void for_shadows(Visit visit) const {
    for (const auto& weak : shadows) {
      if (const auto shadow = weak.lock()) visit(*shadow);
    }
  }

  Actor number(const Clock& start);
  void collect(const Clock& floor);
  template <class Gone>
  void drop(Gone gone);
  void report(std::vector<Race>& found, const Shadow& shadow);
};

// A number for an actor that starts with this knowledge. Steps of a number only rise, so an old access under it can be
// mistaken only for one of the new actor: harmless where the new actor knows it anyway, or where no range remembers it.
Actor Order::State::number(const Clock& start) {
  const auto take = [](std::vector<Actor>& from, std::vector<Actor>::iterator which) {
    const Actor actor = *which;
    from.erase(which);
    return actor;
  };
  if (!unused.empty()) return take(unused, std::prev(unused.end()));
  const auto covered =
      std::find_if(retired.begin(), retired.end(), [&](Actor actor) { return at(start, actor) >= actors[actor].step; });
  if (covered != retired.end()) return take(retired, covered);
  actors.emplace_back();
  return static_cast<Actor>(actors.size() - 1);
}

// Drops the accesses of removed actors for which gone(access) is true, and frees the numbers that no range remembers.
template <class Gone>
void Order::State::drop(Gone gone) {
  std::vector<bool> remembered(actors.size());
  const auto dropped = [&](const Access& access) {
    if (actors[access.actor].live) return false;
    if (gone(access)) return true;
    remembered[access.actor] = true;
    return false;
  };
  for_shadows([&](Shadow& shadow) {
    shadow.accesses.update(0, shadow.accesses.length(), [&](size_t, size_t, Accesses& kept) {
      if (kept.write.step != 0 && dropped(kept.write)) kept.write = Access();
      kept.reads.erase(std::remove_if(kept.reads.begin(), kept.reads.end(), dropped), kept.reads.end());
    });
  });
  const auto freed =
      std::stable_partition(retired.begin(), retired.end(), [&](Actor actor) { return remembered[actor]; });
  unused.insert(unused.end(), freed, retired.end());
  retired.erase(freed, retired.end());
}

void Order::State::collect(const Clock& floor) {
  drop([&](const Access& access) { return access.step <= at(floor, access.actor); });
  if (retired.size() > kRetired) {
    std::vector<bool> forgotten(actors.size());
    for (size_t i = 0; i < retired.size() - kRetired / 2; ++i) forgotten[retired[i]] = true;
    drop([&](const Access& access) { return forgotten[access.actor]; });
  }
  collect_at = retired.size() + kCollectEvery;
}

// Keeps those races of one access that are new.
void Order::State::report(std::vector<Race>& found, const Shadow& shadow) {
  for (Race& race : found) {
    Key identity = key(race);
    if (known.count(identity)) continue;
    if (!race.object) ++count;
    if (races.size() == kRaces) continue;
    known.insert(std::move(identity));
    race.history = shadow.history(race.offset, race.offset + race.length);
    races.push_back(std::move(race));
    if (on_race) on_race(on_race_context, races.back());
  }
}

Order::Order() : state_(std::make_unique<State>()) {}
Order::~Order() = default;

Actor Order::add(const Clock& start) {
  if (state_->retired.size() >= state_->collect_at) state_->collect(floor());
  const Actor actor = state_->number(start);
  auto& member = state_->actors[actor];
  member.live = true;
  member.released = true;
  member.clock = start;
  if (member.clock.size() <= actor) member.clock.resize(actor + 1);
  member.clock[actor] = member.step;
  return actor;
}

void Order::remove(Actor actor) {
  auto& member = state_->actors[actor];
  assert(member.live);
  member.live = false;
  member.clock = Clock();
  state_->retired.push_back(actor);
}

Clock Order::release(Actor actor) {
  auto& member = state_->actors[actor];
  assert(member.live);
  member.released = true;
  return member.clock;
}

void Order::acquire(Actor actor, const Clock& clock) {
  assert(state_->actors[actor].live);
  join(state_->actors[actor].clock, clock);
}

void Order::forget(Actor actor) {
  auto& member = state_->actors[actor];
  assert(member.live);
  member.clock.assign(actor + 1, 0);
  member.clock[actor] = member.step;
}

std::shared_ptr<Shadow> Order::buffer(const std::string& label, size_t length) {
  auto& shadows = state_->shadows;
  if (shadows.size() >= state_->sweep_at) {
    shadows.erase(std::remove_if(shadows.begin(), shadows.end(), [](const auto& weak) { return weak.expired(); }),
                  shadows.end());
    state_->sweep_at = std::max<size_t>(64, 2 * shadows.size());
  }
  auto shadow = std::make_shared<Shadow>(label, length);
  shadows.push_back(shadow);
  return shadow;
}

void Order::access(Actor actor, Shadow& shadow, size_t offset, size_t length, bool write, const Site& site) {
  auto& member = state_->actors[actor];
  assert(member.live);
  if (offset >= shadow.accesses.length() || length == 0) return;
  const size_t end = offset + std::min(length, shadow.accesses.length() - offset);
  if (member.released) {
    member.released = false;
    member.clock[actor] = ++member.step;
  }
  const Access made{actor, member.step, site};

  std::vector<Race> found;
  const auto check = [&](size_t from, size_t to, const Access& earlier, bool earlier_writes) {
    if (earlier.step == 0 || state_->knows(actor, earlier)) return;
    for (Race& race : found) {  // one race for neighbouring segments of one earlier access
      if (race.offset + race.length == from && race.first_writes == earlier_writes && race.first == earlier.site) {
        race.length += to - from;
        return;
      }
    }
    found.push_back({shadow.label, from, to - from, earlier.site, site, earlier_writes, write, "", shadow.object});
  };

  shadow.accesses.update(offset, end, [&](size_t from, size_t to, Accesses& kept) {
    check(from, to, kept.write, true);
    if (write) {
      for (const Access& read : kept.reads) check(from, to, read, false);
      kept.write = made;
      kept.reads.clear();
      return;
    }
    const auto own = std::lower_bound(kept.reads.begin(), kept.reads.end(), actor,
                                      [](const Access& read, Actor other) { return read.actor < other; });
    if (own != kept.reads.end() && own->actor == actor) {
      *own = made;
    } else {
      kept.reads.insert(own, made);
    }
  });
  if (!found.empty()) state_->report(found, shadow);
  if (!write || shadow.object || !state_->on_mixed_writes) return;
  const bool by_gpu = site.command_buffer != 0;
  const LastWrite& other = shadow.last_writes[!by_gpu];
  const bool apart = other.end <= offset || end <= other.begin;
  if (other.made.step != 0 && apart && !shadow.mixed && !state_->knows(actor, other.made)) {
    shadow.mixed = true;
    state_->on_mixed_writes(state_->on_mixed_writes_context,
                            {shadow.label, offset, end - offset, other.made.site, site, true, true, "", false});
  }
  shadow.last_writes[by_gpu] = {made, offset, end};
}

void Order::on_mixed_writes(void (*function)(void* context, const Race& writes), void* context) {
  state_->on_mixed_writes = function;
  state_->on_mixed_writes_context = context;
}

std::shared_ptr<Shadow> Order::object(const std::string& label) {
  std::shared_ptr<Shadow> made = buffer(label, 1);
  made->object = true;
  return made;
}

void Order::note(Shadow& shadow, size_t offset, size_t length, const std::string& text) {
  if (offset >= shadow.notes.length()) return;
  const size_t end = offset + std::min(length, shadow.notes.length() - offset);
  shadow.note(offset, end, std::make_shared<const Note>(Note{++state_->notes, text}));
}

const char* Order::intern(const std::string& text) { return state_->texts.insert(text).first->c_str(); }

const std::vector<Race>& Order::races() const { return state_->races; }

uint64_t Order::count() const { return state_->count; }

void Order::on_race(void (*function)(void* context, const Race& race), void* context) {
  state_->on_race = function;
  state_->on_race_context = context;
}

uint64_t Order::ranges() const {
  uint64_t total = 0;
  state_->for_shadows([&](const Shadow& shadow) { total += shadow.accesses.size() + shadow.notes.size(); });
  return total;
}

uint64_t Order::bytes() const {
  uint64_t total = sizeof(State) + state_->shadows.capacity() * sizeof(std::weak_ptr<Shadow>);
  for (const auto& member : state_->actors) total += sizeof(member) + member.clock.capacity() * sizeof(uint64_t);
  for (const auto& text : state_->texts) total += sizeof(std::string) + text.size();
  // A kept race is in the list and, by its texts, in the set of known ones.
  for (const auto& race : state_->races) total += sizeof(race) + sizeof(Key) + race.buffer.size() + race.history.size();
  state_->for_shadows([&](const Shadow& shadow) { total += shadow.bytes(); });
  return total;
}

Clock Order::floor() const {
  Clock lowest;
  bool first = true;
  for (const auto& member : state_->actors) {
    if (!member.live) continue;
    if (first) {
      lowest = member.clock;
      first = false;
      continue;
    }
    if (lowest.size() > member.clock.size()) lowest.resize(member.clock.size());
    for (size_t i = 0; i < lowest.size(); ++i) lowest[i] = std::min(lowest[i], member.clock[i]);
  }
  return lowest;
}

}  // namespace mpsforge::metal
