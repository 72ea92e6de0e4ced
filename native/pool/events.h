// Events (rule 15). A record commits its stream, so that the stream's position is its value: it only rises, each record
// has its own, and there is no Metal event to recycle.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "../schedule/sync.h"
#include "streams.h"

namespace mpsforge::pool {

class Event {
 public:
  Event(Streams& streams, bool timing) : streams_(streams), timing_(timing) {}

  void record(Stream& stream);
  // Nothing happens, or is waited for, if the event has not been recorded; such an event is complete, as CUDA's is.
  void wait(Stream& stream);
  bool query();
  void synchronize();
  // Waits for both. Throws Failure if either was not recorded, or not with timing.
  static double milliseconds(Event& from, Event& to);

 private:
  // When a record was complete. Shared with the handler that notes it, which may run after the event was recorded anew,
  // or destroyed.
  class Time {
   public:
    void note();
    uint64_t wait();  // nanoseconds

   private:
    sync::Mutex mutex_;
    sync::Condition noted_;
    std::optional<uint64_t> value_;
  };
  struct Record {
    uint32_t stream;  // a number, no pointer
    uint64_t position;
    std::shared_ptr<Time> time;  // nullptr without timing
  };

  std::optional<Record> latest();

  Streams& streams_;
  const bool timing_;
  sync::Mutex mutex_;  // guards record_; a leaf
  std::optional<Record> record_;
};

}  // namespace mpsforge::pool
