#include "device.h"

#include <algorithm>
#include <utility>

#include "command.h"
#include "event.h"
#include "queue.h"
#include "random.h"
#include "serial_queue.h"

namespace mpsforge::metal {

bool in_range(const mpsforge_metal_config& config) {
  return config.on_violation <= MPSFORGE_METAL_ABORT && (config.macos == 0 || config.macos >= 1000) &&
         config.check_order <= 1 && config.models <= MPSFORGE_METAL_MODEL_ALL &&
         config.wait_covers_handlers <= MPSFORGE_METAL_WAIT_DOES_NOT_COVER;
}

Device::Device(const mpsforge_metal_config& config)
    : config(config),
      findings(config.on_violation, config.macos),
      checker(config.check_order != 0, config.models & MPSFORGE_METAL_MODEL_MIXED_WRITES, findings) {}

Device::~Device() = default;

mpsforge_metal_statistics Device::statistics() const {
  mpsforge_metal_statistics all{};
  all.command_buffers = committed;
  all.commands = commands;
  all.handlers = called;
  all.races = checker.races();
  all.violations = findings.violations();
  all.checker_ranges = checker.ranges();
  all.checker_bytes = checker.bytes();
  return all;
}

void Device::start() {
  if (sync::scheduled()) {
    on_stuck_ = sync::on_stuck([device = weak_from_this()] {
      if (const auto alive = device.lock()) {
        sync::Lock lock(alive->mutex);
        alive->stuck();
      }
    });
  } else if (config.watchdog_ms > 0) {
    watchdog_ = sync::Thread([this] { watch(); });
  }
}

void Device::add_kernel(const mpsforge_metal_kernel& kernel, void* context) {
  const std::string name = kernel.name;
  auto made = std::make_shared<const Kernel>(Kernel{name, kernel.host, checker.intern("dispatch " + name), context});
  std::lock_guard<std::mutex> lock(kernels_mutex_);
  kernels_[name] = std::move(made);
}

std::shared_ptr<const Kernel> Device::kernel(const std::string& name) const {
  std::lock_guard<std::mutex> lock(kernels_mutex_);
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : found->second;
}

void Device::delay(uint64_t sequence, uint64_t n) const {
  if (config.max_delay_us == 0) return;
  const uint64_t microseconds = draw(config.seed, sequence, n) % (uint64_t{config.max_delay_us} + 1);
  sync::sleep(std::chrono::microseconds(microseconds));
}

bool Device::wait(sync::Lock& lock, sync::Condition& condition) {
  // The scheduler reports that nothing can go on only once a run. After that, waits are ones that it ends when nothing
  // else can go on.
  if (failed_ && sync::scheduled()) return condition.wait_for(lock, std::chrono::microseconds(0));
  condition.wait(lock);
  return true;
}

void Device::add_queue(const std::shared_ptr<Queue>& queue) {
  queues_.erase(std::remove_if(queues_.begin(), queues_.end(), [](const auto& one) { return one.expired(); }),
                queues_.end());
  queues_.push_back(queue);
}

void Device::add_executor(const std::shared_ptr<Queue>& queue) {
  executors_.push_back({queue, sync::Thread([queue = queue.get()] { queue->run(); })});
}

void Device::add_serial_queue(const std::shared_ptr<SerialQueue>& queue) {
  serial_queues_.erase(
      std::remove_if(serial_queues_.begin(), serial_queues_.end(), [](const auto& one) { return one.expired(); }),
      serial_queues_.end());
  serial_queues_.push_back(queue);
}

void Device::keep(std::shared_ptr<SerialQueue> queue) { kept_.push_back(std::move(queue)); }

void Device::reap(sync::Lock& lock) {
  std::list<Executor> ended;
  for (auto executor = executors_.begin(); executor != executors_.end();) {
    const auto next = std::next(executor);
    if (executor->queue->finished()) ended.splice(ended.end(), executors_, executor);
    executor = next;
  }
  if (ended.empty()) return;
  lock.unlock();
  for (Executor& executor : ended) executor.thread.join();
  lock.lock();
}

std::string Device::signaller(const Event& event, uint64_t value) const {
  std::string by;
  for (const auto& weak : queues_) {
    const auto queue = weak.lock();
    if (queue && queue->will_signal(event, value, &by)) return by;
  }
  return "";
}

std::vector<std::pair<std::string, uint64_t>> Device::waiters(const Event& event) const {
  std::vector<std::pair<std::string, uint64_t>> found;
  for (const auto& weak : queues_) {
    if (const auto queue = weak.lock()) queue->add_waiters(event, &found);
  }
  return found;
}

void Device::used_after_close(const Call& call) {
  findings.add(MPSFORGE_METAL_LIFETIME, 0, "a device is used after its end", "", call.text());
}

bool Device::idle() const { return pending().empty(); }

// What the end of the device waits for.
std::string Device::pending() const {
  for (const auto& weak : queues_) {
    const auto queue = weak.lock();
    if (queue && queue->in_flight() > 0) {
      return std::to_string(queue->in_flight()) + " committed command buffers of queue " + *queue->name;
    }
  }
  for (const auto& weak : serial_queues_) {
    const auto queue = weak.lock();
    if (queue && !queue->idle()) return "the blocks of serial queue " + queue->label;
  }
  if (!handlers.idle()) return "the completion handlers";
  return listeners.idle() ? "" : "the event listeners";
}

void Device::close() {
  const Call call{"device_close", current_thread(*this), 0, nullptr};
  sync::Lock lock(mutex);
  if (closed_) return;
  block(lock, quiet, call.thread, [this] { return "device_close, for " + pending(); }, [this] { return idle(); });
  if (closed_) return;  // by another thread meanwhile
  closed_ = true;
  stop(lock);
  report_left_behind(call);
  if (on_stuck_ != 0) sync::remove_stuck(on_stuck_);
}

// Ends all threads. After a deadlock some work may be left, which then ends in an error.
void Device::stop(sync::Lock& lock) {
  stopping_ = true;
  std::vector<sync::Thread> threads;
  const auto take = [&threads](sync::Thread thread) {
    if (thread.joinable()) threads.push_back(std::move(thread));
  };
  std::vector<std::shared_ptr<SerialQueue>> serial_queues;  // kept until their threads have ended
  for (const auto& weak : serial_queues_) {
    if (auto queue = weak.lock()) serial_queues.push_back(std::move(queue));
  }
  for (const auto& queue : serial_queues) {
    queue->wake();
    take(queue->take());
  }
  std::list<Executor> executors = std::move(executors_);
  executors_.clear();
  for (Executor& executor : executors) executor.queue->wake();
  watch_.notify_all();
  lock.unlock();
  for (Executor& executor : executors) executor.thread.join();
  lock.lock();
  for (const Executor& executor : executors) executor.queue->give_up();
  // Executors can no longer post to these.
  for (Jobs* jobs : {&handlers, &listeners}) {
    jobs->wake();
    take(jobs->take());
  }
  take(std::move(watchdog_));
  lock.unlock();
  for (sync::Thread& thread : threads) thread.join();
  lock.lock();
}

void Device::report_left_behind(const Call& call) {
  for (const std::string& sentence : handles.left()) {
    findings.add(MPSFORGE_METAL_LIFETIME, 0, sentence, "", call.text());
  }
}

}  // namespace mpsforge::metal
