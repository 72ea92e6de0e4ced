#include "streams.h"

#include <string>

#include "failure.h"
#include "guard.h"
#include "pool.h"

namespace mpsforge::pool {

Streams::Streams(const Backend& backend, uint32_t worker_streams, Announcements& announcements)
    : backend_(backend),
      worker_streams_(worker_streams),
      announcements_(announcements),
      table_(1 + worker_streams + MPSFORGE_POOL_EXPLICIT_STREAMS) {
  at(0);
}

void Streams::check(uint32_t id) const {
  if (id >= table_.size()) {
    throw Failure("no stream " + std::to_string(id) + "; there are " + std::to_string(table_.size()));
  }
}

Stream& Streams::at(uint32_t id) {
  check(id);
  if (Stream* stream = table_[id]) return *stream;
  // Before the second stream can be seen by anybody, and with no lock held.
  if (id != 0 && !announcements_.several()) {
    if (Guard::here()) throw Failure("the second stream cannot be made inside an operator");
    if (Stream::here()) throw Failure("the second stream cannot be made on a stream's queue");
    announcements_.birth();
  }
  const sync::Lock lock(mutex_);
  if (!table_[id]) {
    made_.push_back(std::make_unique<Stream>(backend_, id));
    table_[id] = made_.back().get();
  }
  return *table_[id];
}

Stream& Streams::reachable(uint32_t id) {
  Stream& stream = at(id);
  const Stream* here = Stream::here();
  if (here && here != &stream) {
    throw Failure("stream " + std::to_string(id) + " cannot be used on the queue of stream " +
                  std::to_string(here->id()));
  }
  return stream;
}

Stream* Streams::find(uint32_t id) const { return id < table_.size() ? table_[id].load() : nullptr; }

std::vector<Stream*> Streams::live() const {
  std::vector<Stream*> result;
  for (const auto& entry : table_) {
    if (Stream* stream = entry) result.push_back(stream);
  }
  return result;
}

uint32_t Streams::next_explicit() { return 1 + worker_streams_ + explicit_++ % MPSFORGE_POOL_EXPLICIT_STREAMS; }

uint64_t Streams::enqueued(uint32_t id) const {
  const Stream* stream = find(id);
  return stream ? stream->enqueued() : 0;
}

std::vector<uint64_t> Streams::completed() const {
  std::vector<uint64_t> result(table_.size(), 0);
  for (const Stream* stream : live()) result[stream->id()] = stream->completed();
  return result;
}

void Streams::synchronize_device() {
  Stream* const here = Stream::here();
  std::string error;
  auto drain = [&](Stream& stream) {
    const std::string text = stream.drain();
    if (error.empty()) error = text;
  };
  if (here) drain(*here);
  for (Stream* stream : live()) {
    if (stream == here) continue;
    if (here) {
      stream->wait_for(stream->committed());
    } else {
      stream->run([&] { drain(*stream); });
    }
  }
  if (!error.empty()) throw Failure(error);
}

}  // namespace mpsforge::pool
