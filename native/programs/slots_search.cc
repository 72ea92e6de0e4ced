// Searches the schedules of small cases for one that breaks a promise of the slot allocator in
// <ATen/mps/MPSStreamSlots.h>. Prints one line of JSON to standard output; exit status 0, or 1 if one was found, or 2
// for wrong use.
//
// Usage: schedule PREEMPTIONS               all cases, pre-emptions bounded
//        schedule --replay PREEMPTIONS CASE SCHEDULE   one run, as a violation names it
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "../schedule/instrument.h"
// Instrumented from here on.
#include <ATen/mps/MPSStreamSlots.h>

namespace {

using at::mps::MPSStreamSlots;
using schedule::Scheduler;
using Outcome = MPSStreamSlots::Outcome;
using Policy = MPSStreamSlots::Policy;

// A step of a thread's program.
struct Step {
  enum Kind {
    Acquire,
    Return,       // ends the thread's latest lease, if it has one
    ReturnAgain,  // a second time
    ReturnFirst,  // ends the lease of the given slot, taken before the threads started
    Read          // reads the statistics
  } kind;
  uint32_t slot = 0;
};

struct Case {
  const char* name;
  const char* about;
  MPSStreamSlots::Config config;
  uint32_t leased;  // leases taken before the threads start
  std::vector<std::vector<Step>> programs;
};

constexpr Step A{Step::Acquire};
constexpr Step R{Step::Return};
constexpr Step D{Step::ReturnAgain};
constexpr Step N{Step::Read};
constexpr Step S(uint32_t slot) { return {Step::ReturnFirst, slot}; }

const std::vector<Case> cases = {
    {"claim", "three threads, two slots", {2, Policy::Share, -1}, 0, {{A, R}, {A, R}, {A}}},
    {"full", "more threads than slots", {1, Policy::Share, -1}, 0, {{A, R, A}, {A, R}, {A}}},
    {"stale", "a stale return while the slot is leased again", {1, Policy::Share, -1}, 0, {{A, R, D}, {A, R, A}}},
    {"twice", "two threads return the same lease", {1, Policy::Share, -1}, 1, {{S(0)}, {S(0)}, {A}}},
    {"wait", "two wait, one returns", {1, Policy::Wait, -1}, 1, {{S(0)}, {A, R}, {A, R}}},
    {"overtake", "a thread that comes back does not overtake", {1, Policy::Wait, -1}, 0, {{A, R, A, R}, {A, R}}},
    {"two returns", "two wait, two slots come back", {2, Policy::Wait, -1}, 2, {{S(1), S(0)}, {A}, {A}}},
    {"time limit", "time may be up at any moment", {1, Policy::Wait, 5}, 1, {{S(0)}, {A, R}, {A}}},
    {"error", "a slot on its way back", {1, Policy::Error, -1}, 1, {{S(0)}, {A, R}, {A}}},
    {"lower", "a lower slot comes back meanwhile", {2, Policy::Share, -1}, 1, {{A}, {A, S(0), R}}},
    {"moment", "full is a moment", {2, Policy::Share, -1}, 2, {{A}, {S(0), A, S(1)}}},
    {"two returners", "two threads return, one waits", {2, Policy::Wait, -1}, 2, {{S(1)}, {A}, {S(0)}}},
    {"numbers", "the numbers are those of one moment", {2, Policy::Share, -1}, 0, {{A, R}, {A}, {N, N}}},
};

// One finished operation, with logical times.
struct Operation {
  bool acquire;
  Outcome outcome;
  bool accepted;
  bool first_share;
  MPSStreamSlots::Lease lease;
  uint64_t call, end;
  uint64_t queued;  // when it began to wait, or 0
};

struct Model {
  std::vector<uint64_t> generation;  // odd while leased
  bool shared = false;
};

// Does operation on model; false if it cannot have had this result now.
bool step(Model& model, const Operation& operation) {
  if (!operation.acquire) {
    auto& generation = model.generation[operation.lease.slot];
    const bool live = generation % 2 == 1 && generation == operation.lease.generation;
    if (live && operation.accepted) ++generation;
    return live == operation.accepted;
  }
  size_t lowest = 0;
  while (lowest < model.generation.size() && model.generation[lowest] % 2 == 1) ++lowest;
  if (operation.outcome == Outcome::Leased) {
    return lowest == operation.lease.slot && ++model.generation[lowest] == operation.lease.generation;
  }
  if (operation.outcome == Outcome::Shared) {
    if (operation.first_share == model.shared) return false;
    model.shared = true;
  }
  return lowest == model.generation.size();
}

// Whether the operations have an order that agrees with their times and with the model (linearizability). done is a
// set of bits.
bool explained(const std::vector<Operation>& history, const Model& model, uint32_t done) {
  if (done == (1u << history.size()) - 1) return true;
  uint64_t earliest_end = UINT64_MAX;
  for (size_t i = 0; i < history.size(); ++i) {
    if (!(done >> i & 1)) earliest_end = std::min(earliest_end, history[i].end);
  }
  for (size_t i = 0; i < history.size(); ++i) {
    if (done >> i & 1 || history[i].call > earliest_end) continue;
    Model next = model;
    if (step(next, history[i]) && explained(history, next, done | 1u << i)) return true;
  }
  return false;
}

// First come, first served: who had queued before another came, or queued, has its turn first. With one slot the
// generation shows whose turn was first.
std::string check_order(const std::vector<Operation>& history) {
  for (const Operation& early : history) {
    for (const Operation& late : history) {
      if (!early.acquire || !late.acquire || early.outcome != Outcome::Leased || late.outcome != Outcome::Leased ||
          early.queued == 0) {
        continue;
      }
      if ((late.call > early.queued || late.queued > early.queued) && late.lease.generation < early.lease.generation) {
        return "a thread was served before one that had queued earlier";
      }
    }
  }
  return "";
}

// Whether the counts are those of the operations, with so many slots leased before them.
std::string check_statistics(const MPSStreamSlots::Statistics& found, const std::vector<Operation>& history,
                             size_t before) {
  MPSStreamSlots::Statistics expected;
  expected.live = expected.leases = expected.peak = before;
  for (const Operation& operation : history) {
    if (operation.acquire) {
      const bool leased = operation.outcome == Outcome::Leased;
      expected.live += leased;
      expected.leases += leased;
      expected.waits += operation.queued != 0;
      // As the lowest free slot is taken, leasing slot n means that n others were held.
      if (leased) expected.peak = std::max(expected.peak, uint64_t{operation.lease.slot} + 1);
      expected.shares += operation.outcome == Outcome::Shared;
      expected.exhausted += operation.outcome == Outcome::Exhausted;
    } else {
      expected.live -= operation.accepted;
      expected.refused += !operation.accepted;
    }
  }
  if (found.live != expected.live) return "statistics: live";
  if (found.peak != expected.peak) return "statistics: peak";
  if (found.leases != expected.leases) return "statistics: leases";
  if (found.waits != expected.waits) return "statistics: waits";
  if (found.shares != expected.shares) return "statistics: shares";
  if (found.exhausted != expected.exhausted) return "statistics: exhausted";
  if (found.refused != expected.refused) return "statistics: refused";
  if (found.waiting != 0) return "statistics: waiting after all have ended";
  return "";
}

// Runs one case under the current schedule. Returns what is wrong, or an empty text.
std::string run_once(Scheduler& scheduler, const Case& test) {
  MPSStreamSlots slots(test.config);
  std::vector<MPSStreamSlots::Lease> first;
  Model model;
  model.generation.resize(test.config.worker_slots);
  for (uint32_t i = 0; i < test.leased; ++i) {
    first.push_back(slots.acquire().lease);
    ++model.generation[i];
    if (first[i].slot != i) return "the lowest free slot was not taken, single-threaded";
  }
  std::vector<Operation> history;
  std::vector<int> holders(test.config.worker_slots, 0);
  for (const auto& lease : first) ++holders[lease.slot];
  std::set<std::pair<uint32_t, uint64_t>> ended;

  auto acquire = [&](std::vector<MPSStreamSlots::Lease>& held) {
    scheduler.point("acquire");
    scheduler.clear_waited();
    const uint64_t call = scheduler.tick();
    const auto got = slots.acquire();
    history.push_back(
        {true, got.outcome, false, got.first_share, got.lease, call, scheduler.tick(), scheduler.waited()});
    if (got.outcome != Outcome::Leased) return;
    if (got.lease.slot >= holders.size()) scheduler.fail("a slot beyond the cap was leased");
    if (++holders[got.lease.slot] > 1) scheduler.fail("two live leases share a slot");
    held.push_back(got.lease);
  };
  auto give_back = [&](const MPSStreamSlots::Lease& lease, bool again) {
    scheduler.point("return");
    const uint64_t call = scheduler.tick();
    // Of two threads that return the same lease the first to come ends the hold.
    if (!again && ended.emplace(lease.slot, lease.generation).second) --holders[lease.slot];
    const bool accepted = slots.release(lease);
    history.push_back({false, Outcome::Leased, accepted, false, lease, call, scheduler.tick(), 0});
  };
  auto read = [&] {
    scheduler.point("read");
    const auto seen = slots.statistics();
    if (seen.live > seen.peak || seen.peak > seen.leases) scheduler.fail("statistics: not of one moment");
  };

  std::vector<std::function<void()>> programs;
  for (const auto& steps : test.programs) {
    programs.push_back([&, steps] {
      std::vector<MPSStreamSlots::Lease> held;
      std::vector<MPSStreamSlots::Lease> past;
      for (const Step& step : steps) {
        if (step.kind == Step::Acquire) {
          acquire(held);
        } else if (step.kind == Step::Return && !held.empty()) {
          give_back(held.back(), false);
          past.push_back(held.back());
          held.pop_back();
        } else if (step.kind == Step::ReturnAgain && !past.empty()) {
          give_back(past.back(), true);
        } else if (step.kind == Step::ReturnFirst) {
          give_back(first[step.slot], false);
        } else if (step.kind == Step::Read) {
          read();
        }
      }
    });
  }
  if (!scheduler.run(programs)) scheduler.fail("deadlock: a thread waits and nobody can wake it (lost wake-up)");
  if (scheduler.diverged()) scheduler.fail("the program is not deterministic, or the schedule is another one's");

  if (!explained(history, model, 0)) return "the results have no explanation: not linearizable";
  if (test.config.worker_slots == 1) {
    if (const std::string wrong = check_order(history); !wrong.empty()) return wrong;
  }
  return check_statistics(slots.statistics(), history, first.size());
}

uint64_t interleavings = 0;

// Searches one case, or replays one schedule of it.
void search(const Case& test, int preemptions, const char* replay) {
  Scheduler::Options limits;
  limits.preemptions = preemptions;
  limits.odd_wakeups = true;
  Scheduler scheduler(limits);
  scheduler.on_failure = [&](const std::string& message) {
    std::printf("{\"cases\":%zu,\"interleavings\":%" PRIu64
                ",\"preemptions\":%d,\"violation\":{\"case\":\"%s\","
                "\"message\":\"%s\",\"schedule\":\"%s\",\"trace\":\"%s\"}}\n",
                cases.size(), interleavings, preemptions, test.name, message.c_str(), scheduler.describe().c_str(),
                scheduler.trace().c_str());
    std::fflush(stdout);
  };
  if (replay && !scheduler.replay(replay)) scheduler.fail("not a schedule");
  do {
    ++interleavings;
    const std::string wrong = run_once(scheduler, test);
    if (!wrong.empty()) scheduler.fail(wrong);
    if (replay) std::fprintf(stderr, "%s\n", scheduler.trace().c_str());
  } while (!replay && scheduler.advance());
}

}  // namespace

int main(int argc, char** argv) {
  const bool replay = argc == 5 && std::strcmp(argv[1], "--replay") == 0;
  if (argc != 2 && !replay) {
    std::fprintf(stderr, "usage: %s PREEMPTIONS\n       %s --replay PREEMPTIONS CASE SCHEDULE\n", argv[0], argv[0]);
    return 2;
  }
  const int preemptions = std::atoi(argv[replay ? 2 : 1]);
  std::string counts;
  for (const Case& test : cases) {
    if (replay && std::strcmp(argv[3], test.name) != 0) continue;
    const uint64_t before = interleavings;
    search(test, preemptions, replay ? argv[4] : nullptr);
    counts +=
        std::string(counts.empty() ? "" : ",") + "\"" + test.name + "\":" + std::to_string(interleavings - before);
  }
  std::printf("{\"cases\":%zu,\"interleavings\":%" PRIu64 ",\"preemptions\":%d,\"by_case\":{%s}}\n", cases.size(),
              interleavings, preemptions, counts.c_str());
  return 0;
}
