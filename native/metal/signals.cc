#include <algorithm>
#include <iterator>
#include <utility>

#include "order.h"

namespace mpsforge::metal {
namespace {

// Trimming begins at this many signals, so that what is kept of a small program is exact.
constexpr size_t kExact = 64;
// More than this many signals are thinned out whether everybody knows them or not.
constexpr size_t kMost = 4096;

bool below(const Clock& clock, const Clock& floor) {
  for (size_t i = 0; i < clock.size(); ++i) {
    if (clock[i] > (i < floor.size() ? floor[i] : 0)) return false;
  }
  return true;
}

}  // namespace

void Signals::signal(uint64_t value, const Clock& clock) {
  if (value <= value_) return;
  signals_.emplace_hint(signals_.end(), value, clock);
  value_ = value;
}

void Signals::lower(uint64_t value) {
  const auto first = signals_.lower_bound(value);
  const bool answers = value > 0 && first != signals_.end();
  Clock clock = answers ? first->second : Clock();
  signals_.erase(first, signals_.end());
  if (answers) signals_.emplace_hint(signals_.end(), value, std::move(clock));
  value_ = value;
}

const Clock* Signals::reached(uint64_t value) const {
  const auto found = signals_.lower_bound(value);
  return found == signals_.end() ? nullptr : &found->second;
}

uint64_t Signals::value() const { return value_; }

// A signal goes by handing its knowledge to the next one, which then answers for its value too: a wait never knows
// less for it.
void Signals::trim(const Clock& floor) {
  if (signals_.size() < std::max(kExact, trim_at_)) return;
  const auto hand_on = [this](std::map<uint64_t, Clock>::iterator signal) {
    join(std::next(signal)->second, signal->second);
    return signals_.erase(signal);
  };
  for (auto signal = signals_.begin(); std::next(signal) != signals_.end();) {
    // Between two that everybody knows it makes no difference to anybody alive.
    signal =
        below(signal->second, floor) && below(std::next(signal)->second, floor) ? hand_on(signal) : std::next(signal);
  }
  while (signals_.size() > kMost) {
    // Every second one of the older half: the older, the coarser.
    auto signal = signals_.begin();
    for (size_t i = 0; i < kMost / 4; ++i) signal = std::next(hand_on(signal));
  }
  trim_at_ = std::min(kMost + 1, 2 * signals_.size());
}

size_t Signals::size() const { return signals_.size(); }

}  // namespace mpsforge::metal
