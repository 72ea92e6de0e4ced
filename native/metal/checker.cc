#include "checker.h"

#include <algorithm>

namespace mpsforge::metal {
namespace {

// Tokens above which those that everybody knows are dropped: far more objects than a small program synchronises on.
constexpr size_t kTokens = 1024;
// Signals of one event between two looks for those that everybody knows: that takes a pass over all actors.
constexpr size_t kTrimEvery = 64;

std::string side(bool writes, const Site& site) {
  std::string text = writes ? "write by " : "read by ";
  text += site.call;
  if (site.command_buffer == 0) return text + ", thread " + site.thread;
  return text + ", command " + std::to_string(site.command) + " of command buffer " +
         std::to_string(site.command_buffer) + " on queue " + site.queue + ", encoded by thread " + site.thread;
}

// Metal rule 35, after Apple's page on MTLBuffer: the contents are undefined if both the CPU and the GPU write to one
// buffer without a synchronising action between, even where the regions do not overlap. No text is known.
void report_mixed(void* findings, const Race& writes) {
  static_cast<Findings*>(findings)->model(
      0, "the CPU and the GPU write buffer " + writes.buffer + " and nothing orders them", side(true, writes.first),
      side(true, writes.second));
}

void report(void* findings, const Race& race) {
  const std::string first = side(race.first_writes, race.first);
  const std::string second = side(race.second_writes, race.second);
  if (race.object) {
    // Metal rule 36, after Apple's header MPSCore/MPSKernel.h.
    static_cast<Findings*>(findings)->model(0, race.buffer + " used by two threads that nothing orders", first, second);
    return;
  }
  // One race has one message, whichever access a run made first: runs are merged by it.
  const auto [one, other] = std::minmax(first, second);
  const std::string message = "race on bytes " + std::to_string(race.offset) + " to " +
                              std::to_string(race.offset + race.length) + " of buffer " + race.buffer +
                              ": nothing orders the " + one + ", and the " + other;
  static_cast<Findings*>(findings)->add(MPSFORGE_METAL_RACE, 0, message, first, second, race.history);
}

bool covered(const Clock& clock, const Clock& floor) {
  for (size_t i = 0; i < clock.size(); ++i) {
    if (clock[i] > (i < floor.size() ? floor[i] : 0)) return false;
  }
  return true;
}

}  // namespace

Checker::Checker(bool on, bool mixed_writes, Findings& findings) : sweep_at_(kTokens) {
  if (!on) return;
  order_ = std::make_unique<Order>();
  order_->on_race(report, &findings);
  if (mixed_writes) order_->on_mixed_writes(report_mixed, &findings);
}

Actor Checker::add() {
  if (!on()) return 0;
  std::lock_guard<std::mutex> lock(mutex_);
  return order_->add({});
}

void Checker::remove(Actor actor) {
  if (!on()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  order_->remove(actor);
}

Clock Checker::release(Actor actor) {
  if (!on()) return {};
  std::lock_guard<std::mutex> lock(mutex_);
  return order_->release(actor);
}

void Checker::acquire(Actor actor, const Clock& clock) {
  if (!on() || clock.empty()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  order_->acquire(actor, clock);
}

void Checker::begin(Actor actor, const Clock& clock) {
  if (!on()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  order_->forget(actor);
  order_->acquire(actor, clock);
}

void Checker::token_release(Actor actor, const void* object) {
  if (!on()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  join(tokens_[object], order_->release(actor));
  if (tokens_.size() < sweep_at_) return;
  const Clock floor = order_->floor();
  for (auto token = tokens_.begin(); token != tokens_.end();) {
    token = covered(token->second, floor) ? tokens_.erase(token) : std::next(token);
  }
  sweep_at_ = std::max(kTokens, 2 * tokens_.size());
}

void Checker::token_acquire(Actor actor, const void* object) {
  if (!on()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto token = tokens_.find(object);
  if (token != tokens_.end()) order_->acquire(actor, token->second);
}

void Checker::signal(Signals& signals, uint64_t value, Actor actor) {
  if (!on()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  signals.signal(value, order_->release(actor));
  if (signals.size() % kTrimEvery == 0) signals.trim(order_->floor());
}

void Checker::lower(Signals& signals, uint64_t value) {
  if (!on()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  signals.lower(value);
}

Clock Checker::reached(const Signals& signals, uint64_t value) const {
  if (!on()) return {};
  std::lock_guard<std::mutex> lock(mutex_);
  const Clock* clock = signals.reached(value);
  return clock ? *clock : Clock();
}

std::shared_ptr<Shadow> Checker::buffer(const std::string& label, size_t length) {
  if (!on()) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  return order_->buffer(label, length);
}

std::shared_ptr<Shadow> Checker::object(const std::string& label) {
  if (!on()) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  return order_->object(label);
}

void Checker::access(Actor actor, Shadow* shadow, size_t offset, size_t length, bool write, const Site& site) {
  if (!on()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  order_->access(actor, *shadow, offset, length, write, site);
}

void Checker::note(Shadow* shadow, size_t offset, size_t length, const std::string& text) {
  if (!on()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  order_->note(*shadow, offset, length, text);
}

const char* Checker::intern(const std::string& text) {
  if (!on()) return "";
  std::lock_guard<std::mutex> lock(mutex_);
  return order_->intern(text);
}

uint64_t Checker::races() const {
  if (!on()) return 0;
  std::lock_guard<std::mutex> lock(mutex_);
  return order_->count();
}

uint64_t Checker::ranges() const {
  if (!on()) return 0;
  std::lock_guard<std::mutex> lock(mutex_);
  return order_->ranges();
}

uint64_t Checker::bytes() const {
  if (!on()) return 0;
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t tokens = 0;
  for (const auto& [object, clock] : tokens_) tokens += sizeof(object) + clock.capacity() * sizeof(uint64_t);
  return order_->bytes() + tokens;
}

}  // namespace mpsforge::metal
