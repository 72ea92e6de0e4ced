#include "profiler.h"

namespace mpsforge::pool {

void Profiler::profile(Stream& stream, const std::string& name) {
  auto record = std::make_shared<Record>(Record{name, stream.id(), sync::now(), 0});
  {
    const sync::Lock lock(counts_->mutex);
    ++counts_->begun;
  }
  auto finish = [record, counts = counts_] {
    record->end = sync::now();
    const sync::Lock lock(counts->mutex);
    ++counts->finished;
    counts->changed.notify_all();
  };
  if (!stream.when_complete(finish)) finish();
}

void Profiler::stop(Streams& streams) {
  on_ = false;
  if (Stream::here()) return;
  sync::Lock lock(counts_->mutex);
  const uint64_t begun = counts_->begun;
  lock.unlock();
  streams.synchronize_device();
  lock.lock();
  counts_->changed.wait(lock, [&] { return counts_->finished >= begun; });
}

uint64_t Profiler::finished() const {
  const sync::Lock lock(counts_->mutex);
  return counts_->finished;
}

}  // namespace mpsforge::pool
