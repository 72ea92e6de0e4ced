#include "events.h"

#include "failure.h"

namespace mpsforge::pool {

void Event::Time::note() {
  const sync::Lock lock(mutex_);
  value_ = sync::now();
  noted_.notify_all();
}

uint64_t Event::Time::wait() {
  sync::Lock lock(mutex_);
  noted_.wait(lock, [&] { return value_.has_value(); });
  return *value_;  // NOLINT(bugprone-unchecked-optional-access): waited for
}

void Event::record(Stream& stream) {
  Record record{stream.id(), 0, timing_ ? std::make_shared<Time>() : nullptr};
  stream.run([&] {
    // An empty command buffer too: the time must be that of this record, and nothing may be added to a committed one.
    stream.command_buffer();
    if (record.time) stream.when_complete([time = record.time] { time->note(); });
    stream.close();
    record.position = stream.committed();
  });
  const sync::Lock lock(mutex_);
  record_ = record;
}

void Event::wait(Stream& stream) {
  const std::optional<Record> record = latest();
  if (!record || record->stream == stream.id()) return;
  stream.run([&] { stream.order_after(streams_.at(record->stream), record->position); });
}

bool Event::query() {
  const std::optional<Record> record = latest();
  return record && streams_.at(record->stream).completed() >= record->position;
}

void Event::synchronize() {
  const std::optional<Record> record = latest();
  if (record) streams_.at(record->stream).wait_for(record->position);
}

double Event::milliseconds(Event& from, Event& to) {
  const std::optional<Record> first = from.latest();
  const std::optional<Record> second = to.latest();
  if (!from.timing_ || !to.timing_) throw Failure("elapsed time of an event without timing");
  if (!first || !second) throw Failure("elapsed time of an event that was not recorded");
  const uint64_t start = first->time->wait();
  const uint64_t end = second->time->wait();
  return static_cast<double>(static_cast<int64_t>(end - start)) / 1e6;
}

std::optional<Event::Record> Event::latest() {
  const sync::Lock lock(mutex_);
  return record_;
}

}  // namespace mpsforge::pool
