#include "jobs.h"

#include <utility>

#include "command_buffer.h"
#include "device.h"

namespace mpsforge::metal {

Jobs::Jobs(Device& device, uint64_t sequence, const char* name) : device_(device), name_(name), sequence_(sequence) {}

void Jobs::post(Job job) {
  waiting_.push_back(std::move(job));
  if (!thread_.joinable()) thread_ = sync::Thread([this] { run(); });
  wake_.notify_one();
}

bool Jobs::runs(const CpuThread& thread, const CommandBuffer& buffer) const {
  return self_.get() == &thread && running_ && running_->buffer.get() == &buffer;
}

void Jobs::run() {
  device_.thread_begins();
  const ThreadPointer self = current_thread(device_);
  self->rename(name_, device_.checker.intern(name_));
  uint64_t done = 0;
  sync::Lock lock(device_.mutex);
  self_ = self;
  for (;;) {
    while (waiting_.empty() && !device_.stopping()) wake_.wait(lock);
    if (waiting_.empty()) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = &job;
    lock.unlock();
    if (!job.internal) device_.delay(sequence_, done++);
    device_.checker.begin(self->actor, job.after);
    job.function();
    lock.lock();
    running_ = nullptr;
    if (!job.internal) device_.called.fetch_add(1, std::memory_order_relaxed);
    device_.progress();
    if (job.completed) job.buffer->handler_ran(*self);
    device_.quiet.notify_all();
  }
}

}  // namespace mpsforge::metal
