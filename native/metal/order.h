// The happens-before checker: vector clocks over the threads and queues of one device, and a shadow of each buffer.
//
// An actor is what runs one thing after another: a CPU thread, a command queue's executor, the handler thread. Order
// between actors comes only from release and acquire of clocks. Two accesses of a byte, one of them a write, that no
// chain of such edges orders are a race, whichever came first in this run. The method is FastTrack's (Flanagan and
// Freund, PLDI 2009), on byte ranges instead of variables.
//
// Memory grows with the live ranges of the buffers and the number of actors, not with the number of accesses.
// Not thread-safe: the device calls it under one lock. Calls nothing of the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mpsforge::metal {

using Actor = uint32_t;

// What has happened before a moment: for each actor, the number of its steps. Missing entries are 0.
using Clock = std::vector<uint64_t>;

void join(Clock& into, const Clock& from);

// Where an access was made; small, because it is kept for every range. The texts are Order::intern's or literals.
struct Site {
  const char* call = "";        // "fill", "copy", "dispatch add", "cpu_read", ...
  const char* thread = "";      // that encoded it, or made it
  const char* queue = "";       // empty for the CPU
  uint64_t command_buffer = 0;  // its number on the device; 0 for the CPU
  uint32_t command = 0;         // its number in the command buffer
};

struct Race {
  std::string buffer;  // label
  size_t offset, length;
  Site first, second;  // in the order of this run
  bool first_writes, second_writes;
  std::string history;  // notes on the range, newest last; empty if there are none
  bool object = false;  // not of memory, but of an object that two actors use
};

class Shadow;  // of one buffer

class Order {
 public:
  Order();
  ~Order();

  // A new actor that knows what start knows. The numbers of removed actors may be given out again, once nothing can be
  // confused by it: to one that starts with all the removed one did, or when no range remembers the removed one. Of
  // hundreds of removed actors, those are forgotten that floor() knows, and then the oldest: a race with them is
  // missed, never invented.
  Actor add(const Clock& start);
  void remove(Actor actor);

  // What the actor has done and knows up to now; what it does afterwards is not part of it.
  Clock release(Actor actor);
  // The actor knows from now on what the clock knows.
  void acquire(Actor actor, const Clock& clock);
  // The actor knows no more of others: the next block on a thread that serves many is not ordered after the last one's
  // acquisitions. What it did itself it keeps knowing, and what one did whose number it was given.
  void forget(Actor actor);

  // The label is for reports. Races of a buffer outlive it.
  std::shared_ptr<Shadow> buffer(const std::string& label, size_t length);
  // Of an object that is used as a whole: its uses are writes of its one byte.
  std::shared_ptr<Shadow> object(const std::string& label);
  // What lies outside the buffer is left out.
  void access(Actor actor, Shadow& shadow, size_t offset, size_t length, bool write, const Site& site);
  // Keeps a text about a range, for the history of a race; the newest few per range.
  void note(Shadow& shadow, size_t offset, size_t length, const std::string& text);

  // A copy of the text that lives as long as this object, one per content.
  const char* intern(const std::string& text);

  // The races found, each pair of (call, queue or thread, buffer label) once, at most 1,000 kept. count goes on above
  // that, and then counts every race that is not among the kept ones each time it is found.
  const std::vector<Race>& races() const;
  uint64_t count() const;
  // Called with each race when it is found and kept; may be empty.
  void on_race(void (*function)(void* context, const Race& race), void* context);
  // Called once for each buffer of which the CPU and a command write parts that do not overlap, with nothing that
  // orders them: no race, but Metal leaves the contents undefined. Without a function nothing of the kind is looked
  // for.
  void on_mixed_writes(void (*function)(void* context, const Race& writes), void* context);

  uint64_t ranges() const;  // segments of all shadows
  uint64_t bytes() const;   // about the memory used

  // What every actor knows: nothing of it can be part of a race any more, except with an actor added later that starts
  // with less.
  Clock floor() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The signals of one event: the values it had, with what each carries.
class Signals {
 public:
  // The event has a value now, given by something that knows clock. Values must rise; others are ignored.
  void signal(uint64_t value, const Clock& clock);
  // The event has been set back to a value: waits for more than that wait for a new signal, and others know what they
  // knew.
  void lower(uint64_t value);
  // What surely happened before a wait for value ends: the clock of the first signal that reached it, not of later
  // ones, even where this run's wait ended later. nullptr: no signal has reached it. Valid until the next signal or
  // trim.
  const Clock* reached(uint64_t value) const;
  uint64_t value() const;
  // Keeps memory bounded; cheap enough to be called with every signal. Above 64 signals it merges neighbours that lie
  // below floor, and, of thousands, any old neighbours, upwards (a wait for a value so far back may then seem to know
  // more than it does: a race can be missed, never invented).
  void trim(const Clock& floor);
  size_t size() const;

 private:
  std::map<uint64_t, Clock> signals_;
  uint64_t value_ = 0;
  size_t trim_at_ = 0;  // size
};

}  // namespace mpsforge::metal
