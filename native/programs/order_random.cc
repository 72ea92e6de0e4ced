#include "order_random.h"

#include <algorithm>
#include <bitset>
#include <random>
#include <vector>

#include "../metal/order.h"

namespace mpsforge::order_random {
namespace {

using namespace mpsforge::metal;

// The full happens-before relation of a program: for each event, the set of all events before it, built by following
// the edges of the graph. It shares nothing with the checker: no clocks, no ranges.
//
// An actor that forgets makes the relation two. By the first, what it acquired earlier is not before what it does next;
// a pair that this orders must not be reported. By the second, which closes the first under steps of one actor, it is;
// a pair that not even this orders must be found. Between the two the checker may say either.
class Oracle {
 public:
  static constexpr size_t kEvents = 4096;
  using Set = std::bitset<kEvents>;
  enum Relation { kForgetful = 0, kClosed = 1 };

  struct Event {
    Set before[2];     // by Relation
    size_t chain = 0;  // the actor, never used again for another
    int buffer = -1;   // of an access
    size_t offset = 0, length = 0;
    bool write = false;
  };

  size_t add_chain() {
    chains_.emplace_back();
    return chains_.size() - 1;
  }

  // The next event of an actor, after its last one.
  size_t next(size_t chain) {
    const size_t number = events_.size();
    Event event;
    event.chain = chain;
    for (const Relation relation : {kForgetful, kClosed}) {
      event.before[relation] = chains_[chain].before[relation];
      chains_[chain].before[relation].set(number);
    }
    events_.push_back(event);
    return number;
  }

  void edge(size_t from, size_t to_chain) {
    for (const Relation relation : {kForgetful, kClosed}) {
      chains_[to_chain].before[relation] |= events_[from].before[relation];
      chains_[to_chain].before[relation].set(from);
    }
  }

  void forget(size_t chain) {
    Set own;
    for (size_t i = 0; i < events_.size(); ++i) own[i] = events_[i].chain == chain;
    chains_[chain].before[kForgetful] = own;
  }

  Event& event(size_t number) { return events_[number]; }
  size_t size() const { return events_.size(); }

  bool conflict(size_t first, size_t second, Relation relation) const {
    const Event& a = events_[first];
    const Event& b = events_[second];
    return a.buffer >= 0 && a.buffer == b.buffer && (a.write || b.write) && a.offset < b.offset + b.length &&
           b.offset < a.offset + a.length && !b.before[relation][first];
  }

 private:
  struct Chain {
    Set before[2];  // before the next event of the actor
  };

  std::vector<Event> events_;
  std::vector<Chain> chains_;
};

// A program while it runs.
class Program {
 public:
  Program(uint64_t seed, const Shape& shape) : shape_(shape), random_(seed) {
    for (size_t i = 0; i < shape.buffers; ++i) buffers_.push_back(order_.buffer(std::to_string(i), shape.length));
  }

  void run() {
    add();
    add();
    // A step makes at most two events.
    while (oracle_.size() + 2 <= std::min(shape_.events, Oracle::kEvents)) step();
  }

  Result compare();

 private:
  struct Player {
    Actor actor;
    size_t chain;
  };
  struct Released {
    Clock clock;
    size_t event;
  };

  bool chance(unsigned percent) { return random_() % 100 < percent; }

  void add() {
    const size_t chain = oracle_.add_chain();
    ++added_;
    if (players_.empty() || (!shape_.churn && chance(50))) {
      players_.push_back({order_.add({}), chain});
      return;
    }
    Released start = release(players_[random_() % players_.size()]);
    if (!shape_.churn && !released_.empty()) start = released_[random_() % released_.size()];
    oracle_.edge(start.event, chain);
    players_.push_back({order_.add(start.clock), chain});
  }

  void remove(size_t which) {
    order_.remove(players_[which].actor);
    players_.erase(players_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  Released release(const Player& player) { return {order_.release(player.actor), oracle_.next(player.chain)}; }

  void acquire(const Player& player, const Released& from) {
    order_.acquire(player.actor, from.clock);
    oracle_.edge(from.event, player.chain);
  }

  void access(const Player& player) {
    const size_t number = oracle_.next(player.chain);
    auto& event = oracle_.event(number);
    event.buffer = static_cast<int>(random_() % shape_.buffers);
    event.offset = random_() % shape_.length;
    event.length = 1 + random_() % (shape_.length - event.offset);
    if (chance(50)) event.length = std::min<size_t>(event.length, 3);
    event.write = chance(40);
    // A call of its own for each access keeps the checker from taking two races for one.
    Site site;
    site.call = order_.intern("access " + std::to_string(number));
    site.command = static_cast<uint32_t>(number);
    order_.access(player.actor, *buffers_[event.buffer], event.offset, event.length, event.write, site);
  }

  void step() {
    const size_t which = random_() % players_.size();
    const Player player = players_[which];
    const unsigned draw = random_() % 100;
    if (draw < 55) {
      const bool locked = chance(shape_.locked);
      if (locked && !lock_.empty()) acquire(player, lock_.back());
      access(player);
      if (locked) lock_.assign(1, release(player));
    } else if (draw < 70) {
      released_.push_back(release(player));
    } else if (draw < 90) {
      if (released_.empty()) return;
      acquire(player, released_[chance(60) ? released_.size() - 1 : random_() % released_.size()]);
    } else if (draw < 95) {
      if (players_.size() < shape_.live && added_ < shape_.actors) add();
    } else if (shape_.forget) {
      order_.forget(player.actor);
      oracle_.forget(player.chain);
    } else if (players_.size() > 2) {
      remove(which);
    }
  }

  const Shape shape_;
  std::mt19937_64 random_;
  Order order_;
  Oracle oracle_;
  std::vector<Player> players_;
  std::vector<Released> released_;
  std::vector<Released> lock_;  // its last release, if there was one
  std::vector<std::shared_ptr<Shadow>> buffers_;
  size_t added_ = 0;
};

// The bytes at which two accesses overlap.
void mark(std::vector<std::vector<bool>>& bytes, const Oracle::Event& a, const Oracle::Event& b) {
  const size_t end = std::min(a.offset + a.length, b.offset + b.length);
  for (size_t i = std::max(a.offset, b.offset); i < end; ++i) bytes[a.buffer][i] = true;
}

bool any(const std::vector<bool>& bytes) { return std::find(bytes.begin(), bytes.end(), true) != bytes.end(); }

Result Program::compare() {
  Result result;
  std::vector<std::vector<bool>> racy(shape_.buffers, std::vector<bool>(shape_.length));
  auto reported = racy;
  for (size_t second = 0; second < oracle_.size(); ++second) {
    for (size_t first = 0; first < second; ++first) {
      if (oracle_.conflict(first, second, Oracle::kClosed)) mark(racy, oracle_.event(first), oracle_.event(second));
    }
  }
  for (const Race& race : order_.races()) {
    if (race.first.command >= race.second.command ||
        !oracle_.conflict(race.first.command, race.second.command, Oracle::kForgetful)) {
      result.wrong = "a race was reported that is none";
      return result;
    }
    const auto& a = oracle_.event(race.first.command);
    const auto& b = oracle_.event(race.second.command);
    if (std::to_string(a.buffer) != race.buffer || race.first_writes != a.write || race.second_writes != b.write ||
        race.offset < std::max(a.offset, b.offset) ||
        race.offset + race.length > std::min(a.offset + a.length, b.offset + b.length)) {
      result.wrong = "a race was reported with a wrong buffer, range or kind";
      return result;
    }
    // One race is counted for all ranges of one pair of accesses.
    mark(reported, a, b);
  }
  result.races = order_.count();
  // Of each byte the first conflict is found, so the racy bytes are those of the reported pairs, if all were kept.
  const bool all_kept = order_.count() == order_.races().size();
  for (size_t i = 0; i < shape_.buffers; ++i) {
    const std::string name = "buffer " + std::to_string(i);
    if (any(racy[i]) && !any(reported[i])) result.wrong = name + " is racy, but nothing was reported";
    for (size_t byte = 0; all_kept && byte < shape_.length; ++byte) {
      if (racy[i][byte] && !reported[i][byte]) result.wrong = "a racy byte of " + name + " is not in a reported race";
    }
  }
  return result;
}

}  // namespace

Result run(uint64_t seed, const Shape& shape) {
  Program program(seed, shape);
  program.run();
  return program.compare();
}

}  // namespace mpsforge::order_random
