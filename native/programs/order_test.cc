// Tests the happens-before checker by itself: one scenario a function, and random programs against a brute-force
// oracle. Prints how many scenarios ran; exit status 1 if one failed.
//
// Usage: order_test [SEED]
#include "../metal/order.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "order_random.h"
#include "scenarios.h"

namespace {

using namespace mpsforge::metal;
namespace order_random = mpsforge::order_random;
using mpsforge::expect;
using mpsforge::failed;

uint64_t first_seed = 1;

void expect_equal(const std::string& found, const std::string& wanted, const char* what) {
  expect(found == wanted, std::string(what) + " is \"" + found + "\", not \"" + wanted + "\"");
}

void expect_equal(uint64_t found, uint64_t wanted, const char* what) {
  expect_equal(std::to_string(found), std::to_string(wanted), what);
}

constexpr bool kRead = false;
constexpr bool kWrite = true;

Site on_thread(const char* call, const char* thread) {
  Site site;
  site.call = call;
  site.thread = thread;
  return site;
}

Site on_queue(const char* call, const char* queue) {
  Site site = on_thread(call, "main");
  site.queue = queue;
  return site;
}

// Two actors and a buffer.
struct Pair {
  Order order;
  Actor a = order.add({});
  Actor b = order.add({});
  std::shared_ptr<Shadow> buffer = order.buffer("tensor", 100);

  void by_a(size_t offset, size_t length, bool write) { order.access(a, *buffer, offset, length, write, site_a); }
  void by_b(size_t offset, size_t length, bool write) { order.access(b, *buffer, offset, length, write, site_b); }
  void a_before_b() { order.acquire(b, order.release(a)); }

  Site site_a = on_queue("fill", "queue A");
  Site site_b = on_queue("copy", "queue B");
};

// --- races and order

SCENARIO(two_writes_without_order_race) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  pair.by_b(5, 10, kWrite);
  expect_equal(pair.order.count(), 1, "the number of races");
  if (pair.order.races().empty()) return;
  const Race& race = pair.order.races()[0];
  expect_equal(race.buffer, "tensor", "the buffer");
  expect_equal(race.offset, 5, "the offset");
  expect_equal(race.length, 5, "the length");
  expect_equal(race.first.call, "fill", "the first call");
  expect_equal(race.second.queue, "queue B", "the second queue");
  expect(race.first_writes && race.second_writes, "both write");
}

SCENARIO(write_then_read_without_order_race) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  pair.by_b(0, 10, kRead);
  expect_equal(pair.order.count(), 1, "the number of races");
  expect(!pair.order.races().empty() && pair.order.races()[0].first_writes && !pair.order.races()[0].second_writes,
         "the first writes, the second reads");
}

SCENARIO(read_then_write_without_order_race) {
  Pair pair;
  pair.by_a(0, 10, kRead);
  pair.by_b(0, 10, kWrite);
  expect_equal(pair.order.count(), 1, "the number of races");
  expect(!pair.order.races().empty() && !pair.order.races()[0].first_writes && pair.order.races()[0].second_writes,
         "the first reads, the second writes");
}

SCENARIO(two_reads_never_race) {
  Pair pair;
  pair.by_a(0, 10, kRead);
  pair.by_b(0, 10, kRead);
  expect_equal(pair.order.count(), 0, "the number of races");
}

SCENARIO(neighbouring_ranges_do_not_race) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  pair.by_b(10, 10, kWrite);
  pair.by_b(20, 0, kWrite);
  expect_equal(pair.order.count(), 0, "the number of races");
}

SCENARIO(release_and_acquire_order) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  pair.a_before_b();
  pair.by_b(0, 10, kWrite);
  expect_equal(pair.order.count(), 0, "the number of races");
}

SCENARIO(order_passes_through_a_third_actor) {
  Pair pair;
  const Actor c = pair.order.add({});
  pair.by_a(0, 10, kWrite);
  pair.order.acquire(c, pair.order.release(pair.a));
  pair.order.acquire(pair.b, pair.order.release(c));
  pair.by_b(0, 10, kRead);
  expect_equal(pair.order.count(), 0, "the number of races");
}

SCENARIO(what_follows_a_release_is_not_part_of_it) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  const Clock released = pair.order.release(pair.a);
  pair.by_a(50, 10, kWrite);
  pair.order.acquire(pair.b, released);
  pair.by_b(0, 10, kWrite);
  expect_equal(pair.order.count(), 0, "the number of races before the release");
  pair.by_b(50, 10, kWrite);
  expect_equal(pair.order.count(), 1, "the number of races after the release");
}

SCENARIO(order_has_one_direction) {
  Pair pair;
  pair.by_b(0, 10, kWrite);
  pair.a_before_b();
  pair.by_a(0, 10, kWrite);
  expect_equal(pair.order.count(), 1, "the number of races");
}

SCENARIO(a_write_races_with_each_reader_since_the_last_write) {
  Pair pair;
  const Actor c = pair.order.add({});
  const Actor d = pair.order.add({});
  pair.by_a(0, 10, kRead);
  pair.by_b(0, 10, kRead);
  pair.order.access(c, *pair.buffer, 0, 10, kRead, on_queue("dispatch", "queue C"));
  pair.order.acquire(d, pair.order.release(c));
  pair.order.access(d, *pair.buffer, 0, 10, kWrite, on_queue("fill", "queue D"));
  expect_equal(pair.order.count(), 2, "the number of races");
}

SCENARIO(a_write_in_order_hides_what_it_came_after) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  pair.a_before_b();
  pair.by_b(0, 10, kWrite);
  const Actor c = pair.order.add(pair.order.release(pair.b));
  pair.order.access(c, *pair.buffer, 0, 10, kRead, on_thread("cpu_read", "reader"));
  expect_equal(pair.order.count(), 0, "the number of races");
}

SCENARIO(an_actor_starts_with_what_its_start_knows) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  const Actor c = pair.order.add(pair.order.release(pair.a));
  const Actor d = pair.order.add({});
  pair.order.access(c, *pair.buffer, 0, 10, kRead, on_thread("cpu_read", "knows"));
  expect_equal(pair.order.count(), 0, "the number of races of the one that knows");
  pair.order.access(d, *pair.buffer, 0, 10, kRead, on_thread("cpu_read", "does not know"));
  expect_equal(pair.order.count(), 1, "the number of races of the one that does not");
}

SCENARIO(forget_takes_what_was_acquired_and_keeps_what_was_done) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  pair.a_before_b();
  pair.by_b(50, 10, kWrite);
  pair.order.forget(pair.b);
  pair.by_b(50, 10, kWrite);
  expect_equal(pair.order.count(), 0, "the number of races with itself");
  pair.by_b(0, 10, kRead);
  expect_equal(pair.order.count(), 1, "the number of races with the forgotten");
}

SCENARIO(what_lies_outside_the_buffer_is_left_out) {
  Pair pair;
  pair.by_a(90, 1000, kWrite);
  pair.by_b(100, 1, kWrite);
  pair.by_b(SIZE_MAX, SIZE_MAX, kWrite);
  pair.order.note(*pair.buffer, 100, SIZE_MAX, "outside");
  expect_equal(pair.order.count(), 0, "the number of races outside");
  pair.by_b(0, SIZE_MAX, kWrite);
  expect_equal(pair.order.count(), 1, "the number of races inside");
  expect(!pair.order.races().empty() && pair.order.races()[0].offset == 90 && pair.order.races()[0].length == 10,
         "the race covers the last 10 bytes");
  const auto none = pair.order.buffer("none", 0);
  pair.order.access(pair.a, *none, 0, 1, kWrite, pair.site_a);
}

// --- reports

SCENARIO(one_race_covers_the_segments_of_one_earlier_access) {
  Pair pair;
  pair.by_a(0, 100, kWrite);
  pair.by_a(40, 10, kRead);  // splits the range
  pair.by_b(20, 60, kRead);
  expect_equal(pair.order.count(), 1, "the number of races");
  expect(!pair.order.races().empty() && pair.order.races()[0].offset == 20 && pair.order.races()[0].length == 60,
         "the race covers all that was read");
}

SCENARIO(each_pair_of_places_is_reported_once) {
  Pair pair;
  for (int i = 0; i < 10; ++i) {
    pair.by_a(0, 10, kWrite);
    pair.by_b(0, 10, kWrite);
  }
  expect_equal(pair.order.count(), 1, "the number of races of one pair");
  pair.order.access(pair.b, *pair.buffer, 0, 10, kWrite, on_queue("fill", "queue B"));
  pair.by_a(0, 10, kWrite);
  expect_equal(pair.order.count(), 2, "the number of races with another call");
  const auto other = pair.order.buffer("other", 100);
  pair.order.access(pair.a, *other, 0, 10, kWrite, pair.site_a);
  pair.order.access(pair.b, *other, 0, 10, kWrite, pair.site_b);
  expect_equal(pair.order.count(), 3, "the number of races with another buffer");
}

SCENARIO(at_most_a_thousand_races_are_kept) {
  Pair pair;
  uint64_t called = 0;
  pair.order.on_race([](void* context, const Race&) { ++*static_cast<uint64_t*>(context); }, &called);
  for (int i = 0; i < 1500; ++i) {
    pair.order.access(pair.a, *pair.buffer, 0, 10, kWrite,
                      on_queue(pair.order.intern("call " + std::to_string(i)), "queue A"));
    pair.by_b(0, 10, kWrite);
  }
  expect_equal(pair.order.races().size(), 1000, "the number of kept races");
  expect_equal(called, 1000, "the number of calls of on_race");
  expect(pair.order.count() > 1000, "count goes on");
}

SCENARIO(a_race_tells_the_newest_notes_of_its_range) {
  Pair pair;
  for (int i = 1; i <= 6; ++i) pair.order.note(*pair.buffer, 0, 50, "note " + std::to_string(i));
  pair.order.note(*pair.buffer, 20, 1, "freed by main");
  pair.order.note(*pair.buffer, 60, 10, "elsewhere");
  pair.by_a(0, 50, kWrite);
  pair.by_b(10, 30, kWrite);
  expect(!pair.order.races().empty(), "there is a race");
  if (pair.order.races().empty()) return;
  expect_equal(pair.order.races()[0].history, "note 4; note 5; note 6; freed by main", "the history");
}

SCENARIO(a_race_without_notes_has_no_history) {
  Pair pair;
  pair.by_a(0, 50, kWrite);
  pair.by_b(10, 30, kWrite);
  expect(!pair.order.races().empty() && pair.order.races()[0].history.empty(), "the history is empty");
}

SCENARIO(a_race_outlives_its_buffer) {
  Pair pair;
  pair.by_a(0, 50, kWrite);
  pair.by_b(10, 30, kWrite);
  pair.buffer.reset();
  expect(!pair.order.races().empty() && pair.order.races()[0].buffer == "tensor", "the race names the buffer");
  expect_equal(pair.order.ranges(), 0, "the number of ranges");
}

SCENARIO(intern_gives_one_address_per_content) {
  Order order;
  const char* first = order.intern(std::string("dispatch ") + "add");
  for (int i = 0; i < 1000; ++i) order.intern(std::to_string(i));
  expect(first == order.intern("dispatch add"), "the address is the same");
  expect_equal(first, "dispatch add", "the text");
}

// --- memory

SCENARIO(ranges_merge_when_neighbours_become_equal) {
  Pair pair;
  const uint64_t fresh = pair.order.ranges();
  for (size_t i = 0; i < 100; i += 2) pair.by_a(i, 1, kWrite);
  for (size_t i = 0; i < 100; i += 3) pair.order.note(*pair.buffer, i, 1, "note");
  expect_equal(pair.order.ranges(), 100 + 67, "the number of ranges after accesses of single bytes");
  pair.by_a(0, 100, kWrite);
  for (int i = 0; i < 4; ++i) pair.order.note(*pair.buffer, 0, 100, "reused");
  expect_equal(pair.order.ranges(), fresh, "the number of ranges after one access of all");
  pair.by_b(0, 40, kWrite);
  pair.by_b(60, 40, kWrite);
  expect_equal(pair.order.ranges(), fresh + 2, "the number of ranges with a gap");
  pair.by_b(40, 20, kWrite);
  expect_equal(pair.order.ranges(), fresh, "the number of ranges with the gap filled");
}

SCENARIO(memory_does_not_grow_with_history) {
  Order order;
  std::mt19937_64 random(1);
  std::vector<Actor> actors;
  for (int i = 0; i < 10; ++i) actors.push_back(order.add({}));
  const auto buffer = order.buffer("heap", 64 * 1024);
  uint64_t most_ranges = 0;
  uint64_t most_bytes = 0;
  uint64_t early_bytes = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Actor actor = actors[random() % actors.size()];
    const size_t offset = random() % 64 * 1024;
    order.access(actor, *buffer, offset, 1024, random() % 2 == 0, on_queue("dispatch", "queue"));
    order.note(*buffer, offset, 1024, "reused by dispatch " + std::to_string(i));
    order.acquire(actors[random() % actors.size()], order.release(actor));
    if (i % 1000 != 0) continue;
    most_ranges = std::max(most_ranges, order.ranges());
    most_bytes = std::max(most_bytes, order.bytes());
    if (i == 20'000) early_bytes = most_bytes;
  }
  expect(most_ranges <= 2 * 64,
         "64 blocks have at most 64 ranges of accesses and 64 of notes, not " + std::to_string(most_ranges));
  expect(most_bytes <= 2 * early_bytes, "the memory of 200,000 accesses (" + std::to_string(most_bytes) +
                                            ") is at most twice that of 20,000 (" + std::to_string(early_bytes) + ")");
}

// A thread is added, works, is removed and known to its creator, 100,000 times; eight live at a time.
SCENARIO(joined_threads_stay_bounded) {
  Pair pair;
  std::vector<Actor> threads;
  const auto end_first = [&] {
    pair.order.acquire(pair.a, pair.order.release(threads.front()));
    pair.order.remove(threads.front());
    threads.erase(threads.begin());
  };
  for (int i = 0; i < 100'000; ++i) {
    if (threads.size() == 8) end_first();
    threads.push_back(pair.order.add(pair.order.release(pair.a)));
    pair.order.access(threads.back(), *pair.buffer, 0, 50, kRead, on_thread("cpu_read", "worker"));
    pair.order.access(threads.back(), *pair.buffer, 50 + i % 8, 1, kWrite, on_thread("cpu_write", "worker"));
  }
  expect(pair.order.release(pair.a).size() <= 20, "a clock has at most 20 entries");
  expect(pair.order.bytes() < 100'000, "the memory is below 100,000 bytes");
  expect_equal(pair.order.count(), 0, "the number of races");
  while (!threads.empty()) end_first();
  pair.by_a(0, 100, kWrite);
  expect_equal(pair.order.count(), 0, "the number of races after all were joined");
  pair.by_b(0, 100, kWrite);
  expect_equal(pair.order.count(), 1, "the number of races of one that joined nobody");
}

// As above, but nobody ever waits for a thread, so all their reads could still race.
SCENARIO(threads_nobody_waits_for_stay_bounded) {
  Pair pair;
  for (int i = 0; i < 100'000; ++i) {
    const Actor thread = pair.order.add({});
    pair.order.access(thread, *pair.buffer, 0, 50, kRead, on_thread("cpu_read", "worker"));
    pair.order.remove(thread);
  }
  expect(pair.order.release(pair.order.add({})).size() <= 400, "a clock has at most 400 entries");
  expect(pair.order.bytes() < 200'000, "the memory is below 200,000 bytes");
  pair.by_a(0, 50, kWrite);
  expect_equal(pair.order.count(), 1, "the number of races with the last of them");
}

// Enough ended threads for the checker to look which numbers are free, too few for it to forget any.
SCENARIO(ended_threads_count_as_long_as_somebody_does_not_know_them) {
  Pair pair;
  const auto buffer = pair.order.buffer("of many", 200);
  pair.order.access(pair.a, *buffer, 199, 1, kWrite, pair.site_a);
  pair.a_before_b();
  for (size_t i = 0; i < 150; ++i) {
    const Actor thread = pair.order.add(pair.order.release(pair.a));
    const char* call = pair.order.intern("write " + std::to_string(i));
    pair.order.access(thread, *buffer, i, 1, kWrite, on_thread(call, "worker"));
    if (i < 100) pair.order.acquire(pair.b, pair.order.release(thread));
    pair.order.remove(thread);
  }
  pair.order.access(pair.b, *buffer, 0, 100, kWrite, pair.site_b);
  expect_equal(pair.order.count(), 0, "the number of races of one that knows all it met");
  for (int i = 0; i < 10; ++i) {
    const char* call = pair.order.intern("read " + std::to_string(i));
    pair.order.access(pair.order.add({}), *buffer, 100, 100, kRead, on_thread(call, "new"));
  }
  expect_equal(pair.order.count(), 10 * 51, "the number of races of ten that know nobody");
}

SCENARIO(a_number_is_not_given_out_while_its_accesses_count) {
  Pair pair;
  const Actor thread = pair.order.add({});
  pair.order.access(thread, *pair.buffer, 0, 10, kWrite, on_thread("cpu_write", "ended"));
  pair.order.remove(thread);
  const Actor next = pair.order.add({});
  pair.order.access(next, *pair.buffer, 0, 10, kWrite, on_thread("cpu_write", "next"));
  expect_equal(pair.order.count(), 1, "the number of races with the ended thread");
}

SCENARIO(an_old_clock_does_not_know_the_next_owner_of_a_number) {
  Pair pair;
  const Actor thread = pair.order.add({});
  pair.order.access(thread, *pair.buffer, 0, 10, kWrite, on_thread("cpu_write", "ended"));
  const Clock old = pair.order.release(thread);
  pair.order.remove(thread);
  const Actor next = pair.order.add(old);
  expect_equal(next, thread, "the number of one that starts with all the ended thread did");
  pair.order.access(next, *pair.buffer, 0, 10, kWrite, on_thread("cpu_write", "next"));
  expect_equal(pair.order.count(), 0, "the number of races of the next owner");
  pair.order.acquire(pair.b, old);
  pair.by_b(0, 10, kRead);
  expect_equal(pair.order.count(), 1, "the number of races of one that knows the ended thread only");
}

SCENARIO(floor_is_what_every_actor_knows) {
  Pair pair;
  pair.by_a(0, 10, kWrite);
  const auto knows = [&](Actor actor) { return actor < pair.order.floor().size() && pair.order.floor()[actor] > 0; };
  expect(!knows(pair.a), "the floor does not hold a's step before b knows it");
  pair.a_before_b();
  expect(knows(pair.a), "the floor holds a's step after b knows it");
  pair.by_b(0, 10, kWrite);
  expect(!knows(pair.b), "the floor does not hold b's step");
  pair.order.remove(pair.a);
  expect(knows(pair.b), "the floor does not wait for a removed actor");
  pair.order.add({});
  expect(!knows(pair.b), "an actor that knows nothing lowers the floor");
}

// --- signals

SCENARIO(a_wait_gets_the_first_signal_that_reached_its_value) {
  Signals signals;
  signals.signal(2, {1, 0});
  signals.signal(5, {1, 7});
  signals.signal(4, {9, 9});  // does not rise
  signals.signal(5, {9, 9});
  expect_equal(signals.value(), 5, "the value");
  expect_equal(signals.size(), 2, "the number of signals");
  expect(signals.reached(1) && *signals.reached(1) == Clock({1, 0}), "value 1 was reached by signal 2");
  expect(signals.reached(3) && *signals.reached(3) == Clock({1, 7}), "value 3 was reached by signal 5");
  expect(!signals.reached(6), "value 6 was not reached");
}

SCENARIO(what_is_set_back_waits_for_a_new_signal) {
  Signals signals;
  signals.signal(2, {1, 0});
  signals.signal(5, {1, 7});
  signals.lower(3);
  expect_equal(signals.value(), 3, "the value");
  expect(signals.reached(3) && *signals.reached(3) == Clock({1, 7}), "value 3 stays reached by signal 5");
  expect(!signals.reached(4), "value 4 is not reached any more");
  signals.signal(4, {8, 8});
  expect(signals.reached(4) && *signals.reached(4) == Clock({8, 8}), "value 4 was reached by the new signal 4");
}

SCENARIO(trim_keeps_few_signals_exactly) {
  Signals signals;
  for (uint64_t value = 1; value <= 60; ++value) signals.signal(value, {value});
  signals.trim({1000});
  expect_equal(signals.size(), 60, "the number of signals");
}

SCENARIO(trim_forgets_what_everybody_knows) {
  Signals signals;
  for (uint64_t value = 1; value <= 100; ++value) signals.signal(value, {value});
  signals.trim({90});
  expect_equal(signals.size(), 11, "the number of signals");
  expect(signals.reached(20) && *signals.reached(20) == Clock({90}), "value 20 knows what everybody knows");
  expect(signals.reached(95) && *signals.reached(95) == Clock({95}), "value 95 is exact");
}

SCENARIO(trim_bounds_signals_that_nobody_knows) {
  Signals signals;
  // Two signallers by turns that know nothing of each other.
  const uint64_t last = 1'000'000;
  for (uint64_t value = 1; value <= last; ++value) {
    signals.signal(value, value % 2 ? Clock{value, 0} : Clock{0, value});
    signals.trim({});
  }
  expect(signals.size() <= 4096, "there are at most 4,096 signals, not " + std::to_string(signals.size()));
  for (uint64_t value = 1; value <= last; value = value * 3 + 1) {
    const Clock* clock = signals.reached(value);
    expect(clock && (*clock)[value % 2 ? 0 : 1] >= value, "a wait for " + std::to_string(value) + " knows its signal");
  }
  for (uint64_t value = last - 1000; value <= last; ++value) {
    const Clock* clock = signals.reached(value);
    expect(clock && *clock == (value % 2 ? Clock{value, 0} : Clock{0, value}), "a new signal is exact");
  }
}

// --- random programs against the oracle of order_random.h

void random_programs(uint64_t programs, order_random::Shape (*shape)(uint64_t i)) {
  uint64_t racy = 0;
  for (uint64_t i = 0; i < programs && !failed; ++i) {
    const auto result = order_random::run(first_seed + i, shape(i));
    expect(result.wrong.empty(), "seed " + std::to_string(first_seed + i) + ": " + result.wrong);
    racy += result.races > 0;
  }
  expect(failed || (racy >= programs / 5 && racy <= programs * 4 / 5),
         "of racy and race-free programs each are a fifth at least, but " + std::to_string(racy) + " of " +
             std::to_string(programs) + " are racy");
}

SCENARIO(random_programs_agree_with_the_oracle) {
  random_programs(40'000, [](uint64_t i) {
    const unsigned locked = i % 2 ? 100 : 50;
    return order_random::Shape{10 + i % 30, 1 + i % 3, 12, 2 + i % 4, 20, locked, i % 5 == 0, false};
  });
}

// Long enough for removed actors to be collected, more than once.
SCENARIO(random_programs_with_many_threads_agree_with_the_oracle) {
  random_programs(60,
                  [](uint64_t i) { return order_random::Shape{3000, 3, 24, 6, 250, i % 2 ? 100u : 99u, false, true}; });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) first_seed = std::strtoull(argv[1], nullptr, 10);
  return mpsforge::run_scenarios();
}
