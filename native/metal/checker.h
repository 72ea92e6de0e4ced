// The engine's side of the happens-before checker: one lock around it, its reports as findings, and nothing at all
// where it is off. A clock of a checker that is off is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "findings.h"
#include "order.h"

namespace mpsforge::metal {

class Checker {
 public:
  // mixed_writes: the model of that name is on.
  Checker(bool on, bool mixed_writes, Findings& findings);
  bool on() const { return order_ != nullptr; }

  Actor add();
  void remove(Actor actor);
  Clock release(Actor actor);
  void acquire(Actor actor, const Clock& clock);
  // The actor begins something new, which comes after what the clock knows and after nothing else.
  void begin(Actor actor, const Clock& clock);

  // Tokens of the program's own synchronisation.
  void token_release(Actor actor, const void* object);
  void token_acquire(Actor actor, const void* object);

  void signal(Signals& signals, uint64_t value, Actor actor);
  // The CPU has set the event back to a value.
  void lower(Signals& signals, uint64_t value);
  // What surely happened before a wait for value ends.
  Clock reached(const Signals& signals, uint64_t value) const;

  std::shared_ptr<Shadow> buffer(const std::string& label, size_t length);
  std::shared_ptr<Shadow> object(const std::string& label);
  void access(Actor actor, Shadow* shadow, size_t offset, size_t length, bool write, const Site& site);
  void note(Shadow* shadow, size_t offset, size_t length, const std::string& text);
  const char* intern(const std::string& text);

  uint64_t races() const;
  uint64_t ranges() const;
  uint64_t bytes() const;

 private:
  mutable std::mutex mutex_;  // nothing outside of this class is called while it is held, but Findings::add
  std::unique_ptr<Order> order_;
  std::unordered_map<const void*, Clock> tokens_;
  size_t sweep_at_;
};

}  // namespace mpsforge::metal
