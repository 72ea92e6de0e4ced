// Runs a program again and again, by one of the modes, and writes the result.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "../schedule/scheduler.h"
#include "json.h"
#include "world.h"

namespace mpsforge::script {

namespace {

// A text without its numbers, under which runs are counted together: the numbers of command buffers differ from run to
// run. Names like worker1 stay as they are.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins =
        text[i] >= '0' && text[i] <= '9' && (i == 0 || (!std::isalnum(text[i - 1]) && text[i - 1] != '_'));
    if (!begins) {
      out += text[i];
      continue;
    }
    while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9') ++i;
    out += '#';
  }
  return out;
}

// The results of all runs.
class Tally {
 public:
  void add(World& world, const std::string& example) {
    ++runs_;
    if (wrong_line.empty()) wrong_line = world.wrong_line();
    std::map<std::string, bool> seen;
    bool kinds[kKinds] = {};
    for (const auto& finding : world.findings) kinds[finding.kind] = true;
    for (size_t kind = 0; kind < kKinds; ++kind) runs_with_[kind] += kinds[kind];
    for (const std::string& failure : world.failures) {
      count(failures_, "f" + without_numbers(failure), example, "\"text\":" + quoted(failure), seen);
    }
    for (const auto& finding : world.findings) {
      const std::string key = std::to_string(finding.kind) + " " + std::to_string(finding.signature) + " " +
                              without_numbers(finding.message);
      count(findings_, key, example,
            "\"kind\":" + quoted(kKindNames[finding.kind]) + ",\"signature\":" + std::to_string(finding.signature) +
                ",\"message\":" + quoted(finding.message) + ",\"first\":" + quoted(finding.first) +
                ",\"second\":" + quoted(finding.second) + ",\"history\":" + quoted(finding.history),
            seen);
    }
    statistics_ = world.statistics;
    records_ = world.records;
  }

  void add_failure(const std::string& text, const std::string& example) {
    std::map<std::string, bool> seen;
    count(failures_, "f" + without_numbers(text), example, "\"text\":" + quoted(text), seen);
  }

  std::string wrong_line;  // World::wrong_line of the first run that had one
  bool complete = false;
  bool stuck = false;
  size_t steps = 0;

  std::string json() const {
    std::string out = "{\"runs\":" + std::to_string(runs_) + ",\"complete\":" + (complete ? "true" : "false") +
                      ",\"stuck\":" + (stuck ? "true" : "false") + ",\"steps\":" + std::to_string(steps);
    out += ",\"runs_with\":{";
    for (size_t kind = 0; kind < kKinds; ++kind) {
      out += (kind > 0 ? "," : "") + quoted(kKindNames[kind]) + ":" + std::to_string(runs_with_[kind]);
    }
    out += "},\"failures\":" + list(failures_) + ",\"findings\":" + list(findings_);
    out += ",\"statistics\":{\"command_buffers\":" + std::to_string(statistics_.command_buffers) +
           ",\"commands\":" + std::to_string(statistics_.commands) +
           ",\"handlers\":" + std::to_string(statistics_.handlers) +
           ",\"checker_ranges\":" + std::to_string(statistics_.checker_ranges) +
           ",\"checker_bytes\":" + std::to_string(statistics_.checker_bytes) + "}";
    if (!records_.empty()) {
      out += ",\"records\":[";
      bool first = true;
      for (const auto& [thread, records] : records_) {
        for (const Record& record : records) {
          out += std::string(first ? "" : ",") + "{\"thread\":" + quoted(thread) +
                 ",\"line\":" + std::to_string(record.line) + ",\"start\":" + std::to_string(record.start) +
                 ",\"end\":" + std::to_string(record.end) + ",\"value\":" + std::to_string(record.value) + "}";
          first = false;
        }
      }
      out += "]";
    }
    return out + "}";
  }

 private:
  struct Entry {
    std::string body;
    std::string example;
    uint64_t runs = 0;
  };
  using Entries = std::map<std::string, Entry>;

  static void count(Entries& entries, const std::string& key, const std::string& example, const std::string& body,
                    std::map<std::string, bool>& seen) {
    if (seen[key]) return;
    seen[key] = true;
    Entry& entry = entries[key];
    if (entry.runs++ == 0) {
      entry.body = body;
      entry.example = example;
    }
  }

  static std::string list(const Entries& entries) {
    std::string out = "[";
    for (const auto& [key, entry] : entries) {
      out += std::string(out.size() > 1 ? "," : "") + "{" + entry.body + ",\"runs\":" + std::to_string(entry.runs) +
             ",\"example\":" + quoted(entry.example) + "}";
    }
    return out + "]";
  }

  static constexpr size_t kKinds = MPSFORGE_METAL_MODEL + 1;  // of findings
  static constexpr const char* kKindNames[kKinds] = {"violation", "race", "deadlock", "lifetime", "model"};

  uint64_t runs_ = 0;
  uint64_t runs_with_[kKinds] = {};
  Entries failures_;
  Entries findings_;
  mpsforge_metal_statistics statistics_{};
  std::vector<std::pair<std::string, std::vector<Record>>> records_;
};

// Everything that the threads of a run refer to, so that those of a stuck one can be left behind with it.
struct Run {
  Program program;
  std::unique_ptr<World> world;
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
};

constexpr const char* kStuck = "the run is stuck: every thread waits";

bool stopped(const mpsforge_script_options& options) {
  return options.stop && __atomic_load_n(options.stop, __ATOMIC_RELAXED) != 0;
}

// Each run on a thread of its own, as the main thread of the program.
void run_freely(const Program& program, const mpsforge_script_options& options, Tally& tally) {
  for (uint64_t i = 0; i < options.runs && !stopped(options); ++i) {
    const auto run = std::make_shared<Run>();
    run->program = program;
    run->world = std::make_unique<World>(run->program, options, options.seed + i);
    const std::string example = "seed " + std::to_string(options.seed + i);
    std::thread thread([run] {
      run->world->run();
      std::lock_guard<std::mutex> lock(run->mutex);
      run->ended = true;
      run->changed.notify_all();
    });
    std::unique_lock<std::mutex> lock(run->mutex);
    for (uint64_t seen = ~uint64_t{0}; !run->ended;) {
      const uint64_t now = run->world->progress.load(std::memory_order_relaxed);
      if (now == seen) {
        tally.stuck = true;
        tally.wrong_line = run->world->wrong_line();
        tally.add_failure(kStuck, example);
        thread.detach();
        return;
      }
      seen = now;
      run->changed.wait_for(lock, std::chrono::milliseconds(options.stall_ms), [&] { return run->ended; });
    }
    lock.unlock();
    thread.join();
    tally.add(*run->world, example);
    if (!tally.wrong_line.empty()) return;
  }
}

void run_scheduled(const Program& program, const mpsforge_script_options& options, Tally& tally) {
  static std::mutex one_at_a_time;
  std::lock_guard<std::mutex> lock(one_at_a_time);
  const bool search = options.mode == MPSFORGE_SCRIPT_SEARCH;
  schedule::Scheduler::Options limits;
  if (search && options.deviations >= 0) {
    limits.preemptions = options.deviations;
    limits.count_every_choice = true;
  }
  auto scheduler = std::make_unique<schedule::Scheduler>(limits);
  if (options.mode == MPSFORGE_SCRIPT_REPLAY && !scheduler->replay(options.schedule)) {
    tally.wrong_line = "not a schedule: " + std::string(options.schedule);
    return;
  }
  const uint64_t runs = options.mode == MPSFORGE_SCRIPT_REPLAY ? 1 : options.runs;
  for (uint64_t i = 0; i < runs && !tally.complete && !stopped(options); ++i) {
    const bool drawn = options.mode == MPSFORGE_SCRIPT_DRAWN;
    if (drawn) scheduler->draw(options.seed + i);
    auto world = std::make_unique<World>(program, options, drawn ? options.seed + i : options.seed);
    const bool ended = scheduler->run({[&] { world->run(); }});
    const std::string example =
        drawn ? "seed " + std::to_string(options.seed + i) : "schedule " + scheduler->describe();
    tally.steps = std::max(tally.steps, scheduler->steps());
    if (!ended) {
      tally.stuck = true;
      tally.wrong_line = world->wrong_line();
      tally.add_failure(kStuck + std::string(": ") + scheduler->trace(), example);
      (void)scheduler.release();  // its threads hold on to both for ever
      (void)world.release();
      return;
    }
    if (scheduler->diverged()) tally.add_failure("the run did not follow its schedule: not deterministic", example);
    tally.add(*world, example);
    if (!tally.wrong_line.empty()) return;
    if (search) tally.complete = !scheduler->advance();
  }
}

char* copied(const std::string& text) {
  char* result = static_cast<char*>(std::malloc(text.size() + 1));
  if (result) std::memcpy(result, text.c_str(), text.size() + 1);
  return result;
}

}  // namespace

}  // namespace mpsforge::script

extern "C" char* mpsforge_script_run(const char* text, const mpsforge_script_options* options) {
  using namespace mpsforge::script;
  try {
    Program program;
    if (const std::string wrong = parse(text, program); !wrong.empty()) {
      return copied("{\"error\":" + mpsforge::quoted(wrong) + "}");
    }
    Tally tally;
    if (options->mode == MPSFORGE_SCRIPT_FREE) {
      run_freely(program, *options, tally);
    } else {
      run_scheduled(program, *options, tally);
    }
    if (!tally.wrong_line.empty()) return copied("{\"error\":" + mpsforge::quoted(tally.wrong_line) + "}");
    return copied(tally.json());
  } catch (const std::exception& wrong) {  // no memory or no thread
    return copied("{\"error\":" + mpsforge::quoted(wrong.what()) + "}");
  }
}

extern "C" void mpsforge_script_free(char* result) { std::free(result); }
