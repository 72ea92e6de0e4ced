// All streams of a pool, made on first use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "../schedule/sync.h"
#include "announcements.h"
#include "stream.h"

namespace mpsforge::pool {

class Streams {
 public:
  Streams(const Backend& backend, uint32_t worker_streams, Announcements& announcements);

  // Throws Failure if there is no stream of that number.
  void check(uint32_t id) const;
  // Makes the stream if it is new. Throws as check does, and where a guard or a queue must not wait for the birth of
  // the second stream (guard rule 9).
  Stream& at(uint32_t id);
  // The same; throws also if the calling thread is on another stream's queue (rule 11).
  Stream& reachable(uint32_t id);
  Stream* find(uint32_t id) const;  // nullptr: never made, or no such number
  std::vector<Stream*> live() const;
  bool is_explicit(uint32_t id) const { return id > worker_streams_; }
  // Rule 4: the explicit ones in turn.
  uint32_t next_explicit();

  uint64_t enqueued(uint32_t id) const;     // 0 of one never made
  std::vector<uint64_t> completed() const;  // by number

  // Rule 14. Throws Failure if a command buffer ended in an error.
  void synchronize_device();

 private:
  const Backend backend_;
  const uint32_t worker_streams_;
  Announcements& announcements_;
  std::vector<std::atomic<Stream*>> table_;
  sync::Mutex mutex_;  // guards the making of streams
  std::vector<std::unique_ptr<Stream>> made_;
  std::atomic<uint32_t> explicit_{0};
};

}  // namespace mpsforge::pool
