// One run of a program: its device, pool, objects and threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "../schedule/sync.h"
#include "parse.h"
#include "script.h"

namespace mpsforge::script {

// An object that is not there, or not any more: which of these, only the run decides, so it is a failure of the run.
class Missing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a line of the program has got wrong: an unknown verb, an argument too few. Ends its section.
class Wrong : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The words of a line after its verb.
class Arguments {
 public:
  explicit Arguments(const Line& line, size_t first);
  bool more() const { return next_ < end_; }
  const std::string& word();  // throws Wrong if there is none
  uint64_t number();
  int64_t integer();
  // The number after "=", if the line has one.
  bool expects() const { return expects_; }
  int64_t expected() const { return expected_; }

 private:
  const Line& line_;
  size_t next_;
  size_t end_;
  bool expects_ = false;
  int64_t expected_ = 0;
};

struct Record {
  int line;
  uint64_t start, end;  // nanoseconds, or scheduling ticks
  int64_t value;
};

class World;

// A section under way on a thread.
struct Context {
  World& world;
  std::string thread;
  int line = 0;
  bool stopped = false;
  int64_t value = 0;                                // of the last verb that has one
  std::vector<std::pair<uint32_t, int>> overrides;  // tokens of set_current_stream and by_program, for "restore"
  std::vector<Record> records;

  // Keeps the value and holds it against what the line expects.
  void observe(Arguments& arguments, int64_t found);
  void fail(const std::string& what);
  std::string here(const std::string& what) const;  // with the thread and the line
};

using Verb = void (*)(Context& context, Arguments& arguments);

struct Object {
  const char* type;  // one literal per type
  void* pointer;
  void (*release)(World& world, void* pointer);
};

// A block of the program as a C function's context; lives as long as the world.
struct Callback {
  World& world;
  std::string block;
};
void run_callback(void* callback);

class World {
 public:
  World(const Program& program, const mpsforge_script_options& options, uint64_t seed);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void run();  // on the main thread of the run; all of it, down to the closed device
  void run_block(const std::string& name);
  Callback* callback(const std::string& block);

  const mpsforge_metal_api& metal() const { return *options_.metal; }
  mpsforge_metal_device* device();  // made with the first use
  const mpsforge_pool_api& pool_api() const { return *options_.pool; }
  mpsforge_pool* pool();
  void make_pool(const std::string& environment);

  void put(const std::string& name, const Object& object);
  template <class T>
  T* get(const std::string& name, const char* type) {
    return static_cast<T*>(find(name, type));
  }
  Object take(const std::string& name);  // out of the table
  uint64_t& variable(const std::string& name);

  void fail(const std::string& text);

  mpsforge_metal_config configuration{};
  // The GIL of a program that asked for one ("gil" in its set-up). Held by a thread but where it blocks.
  bool gil = false;
  bool gil_take();                    // false if there is none, or the calling thread holds it
  bool gil_let_go();                  // whether the calling thread held it
  std::atomic<uint64_t> progress{0};  // rises with every step

  // The first line that is none of the language, and why; empty if all are. What else was found means nothing then.
  std::string wrong_line();

  // After run.
  std::vector<std::string> failures;
  std::vector<mpsforge_metal_finding> findings;
  mpsforge_metal_statistics statistics{};
  std::vector<std::pair<std::string, std::vector<Record>>> records;

 private:
  struct Meeting {  // of a barrier, or of post and await
    sync::Mutex mutex;
    sync::Condition changed;
    size_t parties = 0;
    size_t here = 0;
    uint64_t count = 0;  // of rounds, or of posts
  };

  void run_section(Context& context, const Section& section);
  void run_lines(Context& context, const Section& section, size_t from, size_t to);
  void run_line(Context& context, const Line& line);
  void finish(Context& context);
  void* find(const std::string& name, const char* type);
  Meeting& meeting(const std::string& name);
  // The lines that belong to the language itself; false if the verb is none of them.
  bool control(Context& context, const Line& line, Arguments& arguments);
  void configure(Arguments& arguments);
  void barrier(const std::string& name);
  void post(const std::string& name);
  void await(const std::string& name, uint64_t count);
  bool stops(Arguments& arguments);
  void fork_child(const std::string& block);
  void release_all();

  const Program& program_;
  const mpsforge_script_options options_;
  mpsforge_metal_device* device_ = nullptr;
  mpsforge_pool* pool_ = nullptr;
  sync::Mutex gil_mutex_;

  std::mutex mutex_;  // guards what follows; nothing is called under it
  std::string wrong_line_;
  std::vector<std::pair<std::string, Object>> objects_;  // in the order of their creation
  std::deque<Callback> callbacks_;
  std::map<std::string, uint64_t> variables_;
  std::map<std::string, std::unique_ptr<Meeting>> meetings_;
};

const std::map<std::string, Verb>& metal_verbs();
const std::map<std::string, Verb>& pool_verbs();

}  // namespace mpsforge::script
