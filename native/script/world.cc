#include "world.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace mpsforge::script {

namespace {

// Whether the calling thread holds the GIL of the world that it works for.
thread_local bool holds_gil = false;

int64_t whole_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || errno != 0) throw Wrong("not a number: " + text);
  return number;
}

}  // namespace

Arguments::Arguments(const Line& line, size_t first) : line_(line), next_(first), end_(line.words.size()) {
  if (end_ >= first + 2 && line.words[end_ - 2] == "=") {
    expects_ = true;
    expected_ = whole_number(line.words[end_ - 1]);
    end_ -= 2;
  }
}

const std::string& Arguments::word() {
  if (next_ >= end_) throw Wrong("a word is missing at the end");
  return line_.words[next_++];
}

uint64_t Arguments::number() { return static_cast<uint64_t>(whole_number(word())); }

int64_t Arguments::integer() { return whole_number(word()); }

void Context::observe(Arguments& arguments, int64_t found) {
  value = found;
  if (arguments.expects() && found != arguments.expected()) {
    fail("is " + std::to_string(found) + ", not " + std::to_string(arguments.expected()));
  }
}

std::string Context::here(const std::string& what) const {
  return thread + ", line " + std::to_string(line) + ": " + what;
}

void Context::fail(const std::string& what) { world.fail(here(what)); }

void run_callback(void* callback) {
  auto* own = static_cast<Callback*>(callback);
  own->world.run_block(own->block);
}

World::World(const Program& program, const mpsforge_script_options& options, uint64_t seed)
    : program_(program), options_(options) {
  configuration.seed = seed;
  configuration.max_delay_us = options.max_delay_us;
  configuration.on_violation = options.on_violation;
  configuration.check_order = 1;
  configuration.models = MPSFORGE_METAL_MODEL_ENCODES;
  for (const Line& line : program.setup.lines) {
    if (line.words[0] == "pool") configuration.models |= MPSFORGE_METAL_MODEL_EARLY_WAIT;
  }
  configuration.watchdog_ms = options.stall_ms / 2;  // it names a deadlock before the run counts as stuck
}

mpsforge_metal_device* World::device() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (device_) return device_;
  device_ = metal().device_create(&configuration);
  if (!device_) throw Wrong("no device: the configuration is out of range, or there is none");
  metal().name_thread(device_, "main");  // the set-up makes it
  return device_;
}

mpsforge_pool* World::pool() {
  if (!pool_) throw Missing("no pool: the set-up has no line \"pool\"");
  return pool_;
}

void World::make_pool(const std::string& environment) {
  mpsforge_pool_config config{};
  config.metal = options_.metal;
  config.device = device();
  config.environment = environment.c_str();
  config.blocking = [](void* context, int begins) {
    auto* world = static_cast<World*>(context);
    // A thread that did not hold it does not take it.
    thread_local std::vector<bool> let_go;
    if (begins) {
      let_go.push_back(world->gil_let_go());
    } else {
      if (let_go.back()) world->gil_take();
      let_go.pop_back();
    }
  };
  config.context = this;
  pool_ = pool_api().create(&config);
  if (!pool_) throw Missing("no pool");
}

void World::put(const std::string& name, const Object& object) {
  // NULL is what a violation refused; calls on it do nothing.
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [other, old] : objects_) {
    if (other == name) throw Wrong("a second object " + name);
  }
  objects_.emplace_back(name, object);
}

void* World::find(const std::string& name, const char* type) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [other, object] : objects_) {
    if (other != name) continue;
    if (std::strcmp(object.type, type) != 0) throw Wrong(name + ": " + object.type + ", not " + type);
    return object.pointer;
  }
  throw Missing(std::string("no ") + type + " " + name);
}

Object World::take(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto place = objects_.begin(); place != objects_.end(); ++place) {
    if (place->first != name) continue;
    const Object object = place->second;
    objects_.erase(place);
    return object;
  }
  throw Missing("no object " + name);
}

uint64_t& World::variable(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  return variables_[name];
}

Callback* World::callback(const std::string& block) {
  if (program_.blocks.count(block) == 0) throw Wrong("no block " + block);
  std::lock_guard<std::mutex> lock(mutex_);
  callbacks_.push_back({*this, block});
  return &callbacks_.back();
}

void World::fail(const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  failures.push_back(text);
}

std::string World::wrong_line() {
  std::lock_guard<std::mutex> lock(mutex_);
  return wrong_line_;
}

bool World::gil_take() {
  if (!gil || holds_gil) return false;
  sync::note("for-gil");
  gil_mutex_.lock();
  holds_gil = true;
  return true;
}

bool World::gil_let_go() {
  if (!gil || !holds_gil) return false;
  holds_gil = false;
  gil_mutex_.unlock();
  return true;
}

World::Meeting& World::meeting(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& place = meetings_[name];
  if (!place) {
    place = std::make_unique<Meeting>();
    for (const Section& thread : program_.threads) {
      place->parties += std::any_of(thread.lines.begin(), thread.lines.end(), [&](const Line& line) {
        return line.words[0] == "barrier" && line.words.size() > 1 && line.words[1] == name;
      });
    }
  }
  return *place;
}

void World::barrier(const std::string& name) {
  Meeting& place = meeting(name);
  metal().order_release(device(), &place);
  {
    sync::Lock lock(place.mutex);
    const uint64_t round = place.count;
    if (++place.here == place.parties) {
      place.here = 0;
      ++place.count;
      place.changed.notify_all();
    }
    place.changed.wait(lock, [&] { return place.count != round; });
  }
  metal().order_acquire(device(), &place);
}

void World::post(const std::string& name) {
  Meeting& place = meeting(name);
  metal().order_release(device(), &place);
  sync::Lock lock(place.mutex);
  ++place.count;
  place.changed.notify_all();
}

void World::await(const std::string& name, uint64_t count) {
  Meeting& place = meeting(name);
  {
    sync::Lock lock(place.mutex);
    place.changed.wait(lock, [&] { return place.count >= count; });
  }
  metal().order_acquire(device(), &place);
}

bool World::stops(Arguments& arguments) {
  if (arguments.word() != "unless") throw Wrong("stop unless completed CB, or stop unless value EVENT N");
  const std::string& what = arguments.word();
  if (what == "completed") {
    return metal().status(get<mpsforge_metal_command_buffer>(arguments.word(), "command buffer")) !=
           MPSFORGE_METAL_COMPLETED;
  }
  if (what != "value") throw Wrong("stop unless completed CB, or stop unless value EVENT N");
  auto* event = get<mpsforge_metal_event>(arguments.word(), "shared event");
  return metal().event_value(event) < arguments.number();
}

void World::configure(Arguments& arguments) {
  if (device_) throw Wrong("device: must be the first line");
  while (arguments.more()) {
    const std::string& pair = arguments.word();
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) throw Wrong("device KEY=NUMBER, not " + pair);
    const auto value = static_cast<uint32_t>(whole_number(pair.substr(equals + 1)));
    const std::string key = pair.substr(0, equals);
    const std::map<std::string, uint32_t*> keys = {{"abort", &configuration.on_violation},
                                                   {"macos", &configuration.macos},
                                                   {"models", &configuration.models},
                                                   {"cap", &configuration.max_uncompleted},
                                                   {"covers", &configuration.wait_covers_handlers},
                                                   {"split", &configuration.graph_split},
                                                   {"order", &configuration.check_order},
                                                   {"watchdog", &configuration.watchdog_ms}};
    const auto found = keys.find(key);
    if (found == keys.end()) throw Wrong("device: no key " + key);
    *found->second = value;
  }
}

// Failures of the child come back through a pipe. The child may call nothing that needs a lock which another thread
// held at the fork: that is the very thing under test.
void World::fork_child(const std::string& name) {
  if (sync::scheduled()) throw Wrong("fork: runs freely only");
  const auto block = program_.blocks.find(name);
  if (block == program_.blocks.end()) throw Wrong("no block " + name);
  int ends[2];
  if (pipe(ends) != 0) throw Wrong(std::string("fork: ") + std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) throw Wrong(std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    failures.clear();
    Context context{*this, "child", 0, false, 0, {}, {}};
    run_section(context, block->second);
    std::string text;
    for (const std::string& failure : failures) text += failure + "\n";
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t n = ::write(ends[1], text.data() + sent, text.size() - sent);
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    _exit(failures.empty() && sent == text.size() ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status)) fail("the forked child died by signal " + std::to_string(WTERMSIG(status)));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) fail("in the forked child: " + text);
}

bool World::control(Context& context, const Line& line, Arguments& arguments) {
  const std::string& verb = line.words[0];
  if (verb == "device") {
    configure(arguments);
  } else if (verb == "pool") {
    std::string environment;
    while (arguments.more()) environment += arguments.word() + "\n";
    make_pool(environment);
  } else if (verb == "gil") {
    gil = true;
    gil_take();
  } else if (verb == "no_python") {
    gil_let_go();
  } else if (verb == "with_gil") {
    const bool took = gil_take();
    run_block(arguments.word());
    if (took) gil_let_go();
  } else if (verb == "await_with_gil") {
    await(arguments.word(), 1);
  } else if (verb == "barrier" || verb == "post" || verb == "await" || verb == "pause") {
    const bool held = gil_let_go();
    if (verb == "barrier") barrier(arguments.word());
    if (verb == "post") post(arguments.word());
    if (verb == "await") {
      const std::string& name = arguments.word();
      await(name, arguments.more() ? arguments.number() : 1);
    }
    if (verb == "pause") sync::sleep(std::chrono::microseconds(arguments.more() ? arguments.number() : 10));
    if (held) gil_take();
  } else if (verb == "stop") {
    context.stopped = stops(arguments);
  } else if (verb == "release") {
    const Object object = take(arguments.word());
    if (object.pointer) object.release(*this, object.pointer);
  } else if (verb == "leak") {
    take(arguments.word());
  } else if (verb == "fork") {
    fork_child(arguments.word());
  } else {
    return false;
  }
  return true;
}

void World::run_line(Context& context, const Line& line) {
  context.line = line.number;
  const uint64_t start = sync::now();
  Arguments arguments(line, 1);
  if (!control(context, line, arguments)) {
    const auto& metal_table = metal_verbs();
    const auto& pool_table = pool_verbs();
    const auto in_pool = pool_table.find(line.words[0]);
    const auto in_metal = metal_table.find(line.words[0]);
    if (in_pool != pool_table.end()) {
      in_pool->second(context, arguments);
    } else if (in_metal != metal_table.end()) {
      in_metal->second(context, arguments);
    } else {
      throw Wrong("no verb " + line.words[0]);
    }
    if (arguments.more()) throw Wrong("a word too many: " + arguments.word());
  }
  progress.fetch_add(1, std::memory_order_relaxed);
  if (options_.record) context.records.push_back({line.number, start, sync::now(), context.value});
}

void World::run_lines(Context& context, const Section& section, size_t from, size_t to) {
  for (size_t i = from; i < to && !context.stopped; ++i) {
    const Line& line = section.lines[i];
    if (line.words[0] != "repeat") {
      run_line(context, line);
      continue;
    }
    const int64_t times = whole_number(line.words[1]);
    for (int64_t n = 0; n < times && !context.stopped; ++n) run_lines(context, section, i + 1, line.done);
    i = line.done;
  }
}

void World::run_section(Context& context, const Section& section) {
  try {
    run_lines(context, section, 0, section.lines.size());
  } catch (const Wrong& refused) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (wrong_line_.empty()) wrong_line_ = context.here(refused.what());
    failures.push_back(wrong_line_);  // ends the run early, and a forked child as a failed one
  } catch (const std::exception& raised) {
    context.fail(raised.what());
  }
}

void World::run_block(const std::string& name) {
  // Blocks that run each other in place would end the process when the stack is used up.
  constexpr int deepest = 64;
  thread_local int depth = 0;
  Context context{*this, "block " + name, 0, false, 0, {}, {}};
  if (depth == deepest) {
    context.fail("blocks run each other without end");
    return;
  }
  ++depth;
  run_section(context, program_.blocks.at(name));
  --depth;
  finish(context);
}

void World::finish(Context& context) {
  if (!options_.record) return;
  std::lock_guard<std::mutex> lock(mutex_);
  records.emplace_back(context.thread, std::move(context.records));
}

void World::release_all() {
  for (;;) {
    Object object{};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (objects_.empty()) return;
      object = objects_.back().second;
      objects_.pop_back();
    }
    if (object.pointer) object.release(*this, object.pointer);
  }
}

void World::run() {
  Context main{*this, "main", 0, false, 0, {}, {}};
  run_section(main, program_.setup);
  if (failures.empty()) {
    const char start = 0;
    const char end = 0;
    metal().order_release(device(), &start);
    const bool held = gil_let_go();
    std::vector<sync::Thread> threads;
    for (const Section& section : program_.threads) {
      threads.emplace_back([&] {
        metal().name_thread(device(), section.name.c_str());
        metal().order_acquire(device(), &start);
        gil_take();
        Context context{*this, section.name, 0, false, 0, {}, {}};
        run_section(context, section);
        gil_let_go();
        if (pool_) pool_api().end_thread(pool_);
        metal().order_release(device(), &end);
        finish(context);
      });
    }
    for (sync::Thread& thread : threads) thread.join();
    if (held) gil_take();
    metal().order_acquire(device(), &end);
    run_section(main, program_.end);
  }
  finish(main);
  gil_let_go();
  release_all();
  if (pool_) pool_api().destroy(pool_);
  pool_ = nullptr;
  if (!device_) return;
  metal().device_close(device_);
  findings.resize(metal().findings(device_, nullptr, 0));
  metal().findings(device_, findings.data(), findings.size());
  metal().statistics(device_, &statistics);
  metal().device_release(device_);
  device_ = nullptr;
}

}  // namespace mpsforge::script
