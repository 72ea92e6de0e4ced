// A device: what all its parts share, and its end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../schedule/sync.h"
#include "checker.h"
#include "findings.h"
#include "handle.h"
#include "jobs.h"
#include "metal.h"
#include "models.h"
#include "threads.h"

namespace mpsforge::metal {

class Event;
class Queue;
class SerialQueue;
struct Kernel;

// A call, or a queue's executor, that waits for something inside the engine.
struct Blocked {
  ThreadPointer thread;  // null: a queue's executor
  std::function<std::string()> what;
  sync::Condition* condition;
  const SerialQueue* serial = nullptr;  // whose turn it waits for
  bool released = false;                // by a deadlock
};

// Whether device_create takes it.
bool in_range(const mpsforge_metal_config& config);

class Device : public std::enable_shared_from_this<Device> {
 public:
  explicit Device(const mpsforge_metal_config& config);
  ~Device();

  // Starts what watches for deadlocks. Once, after the first shared_ptr exists.
  void start();
  // See device_release in metal.h. Only the first call does anything.
  void close();

  const mpsforge_metal_config config;
  Findings findings;
  Checker checker;
  Handles handles;
  Windows windows;

  // Guards everything of the device's objects that is not said to be otherwise; a call takes it about once, because
  // each time is a scheduling point. Kernels, copies, fills and the program's functions run without it.
  sync::Mutex mutex;

  void add_kernel(const mpsforge_metal_kernel& kernel, void* context);
  std::shared_ptr<const Kernel> kernel(const std::string& name) const;

  // A moment of a length drawn from the seed. Not with the mutex held.
  void delay(uint64_t sequence, uint64_t n) const;
  uint64_t next_thread() { return ++threads_; }
  uint64_t next_buffer() { return ++buffers_; }
  uint64_t next_object() { return ++objects_; }

  // Notify the observer of metal.h, if there is one, with the mutex held or not.
  void observe(const mpsforge_metal_observer& observer) { observer_ = observer; }
  void thread_begins() const {
    if (observer_.thread_begins) observer_.thread_begins();
  }
  void released(const void* object) const {
    if (observer_.release) observer_.release(object);
  }
  void acquired(const void* object) const {
    if (observer_.acquire) observer_.acquire(object);
  }

  // --- with the mutex held
  // Waits until done. Returns false if a deadlock was found instead; what it waits for is then part of the report. Does
  // not wait once the device's threads are to end: only after a deadlock is there anything left to wait for then.
  template <class What, class Done>
  bool block(sync::Lock& lock, sync::Condition& condition, const ThreadPointer& thread, What what, Done done,
             const SerialQueue* serial = nullptr) {
    if (done()) return true;
    Blocked blocked{thread, std::ref(what), &condition, serial};
    const auto place = blocked_.insert(blocked_.end(), &blocked);
    watch_.notify_all();
    while (!done() && !blocked.released && !stopping_ && wait(lock, condition)) {
    }
    blocked_.erase(place);
    return done();
  }
  void add_queue(const std::shared_ptr<Queue>& queue);
  void add_executor(const std::shared_ptr<Queue>& queue);
  void add_serial_queue(const std::shared_ptr<SerialQueue>& queue);
  // Keeps a released queue, which something still runs on, until the device's end.
  void keep(std::shared_ptr<SerialQueue> queue);
  // Joins executors that have ended.
  void reap(sync::Lock& lock);
  // Who will give the event the value, as far as anybody has committed to; empty if nobody has.
  std::string signaller(const Event& event, uint64_t value) const;
  // Committed command buffers that have yet to wait for a value that the event does not have, with that value.
  std::vector<std::pair<std::string, uint64_t>> waiters(const Event& event) const;
  bool stopping() const { return stopping_; }
  bool closed() const { return closed_; }
  // Records the use of a closed device.
  void used_after_close(const Call& call);

  Jobs handlers{*this, 0, "handlers"};
  Jobs listeners{*this, 1, "listeners"};
  sync::Condition quiet;  // something ended, see idle
  int executing = 0;      // executors inside of a command: what waits for them is not stuck

  // Whatever shows that the device's program still goes on.
  void progress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  std::atomic<uint64_t> committed{0}, commands{0}, called{0};
  mpsforge_metal_statistics statistics() const;

 private:
  struct Executor {
    std::shared_ptr<Queue> queue;
    sync::Thread thread;
  };

  bool wait(sync::Lock& lock, sync::Condition& condition);
  bool idle() const;
  std::string pending() const;
  void stop(sync::Lock& lock);
  void report_left_behind(const Call& call);
  // watchdog.cc
  void watch();
  void stuck();
  bool gets_its_turn(const Blocked& blocked) const;

  mpsforge_metal_observer observer_{};
  std::atomic<uint64_t> threads_{0}, buffers_{0}, progress_{0};
  std::atomic<uint64_t> objects_{1};  // 0 and 1 are the sequences of handlers and listeners
  mutable std::mutex kernels_mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Kernel>> kernels_;

  std::vector<std::weak_ptr<Queue>> queues_;
  std::vector<std::weak_ptr<SerialQueue>> serial_queues_;
  std::vector<std::shared_ptr<SerialQueue>> kept_;
  std::list<Executor> executors_;
  std::list<Blocked*> blocked_;
  bool closed_ = false;    // or about to be
  bool stopping_ = false;  // the device's threads
  bool failed_ = false;    // a deadlock was found
  sync::Thread watchdog_;
  sync::Condition watch_;
  uint64_t on_stuck_ = 0;
};

}  // namespace mpsforge::metal
