// What the happens-before checker remembers of one buffer: for each byte the last write, the reads since then, and the
// newest notes. Kept for ranges, which are split where accesses end and merged again when neighbours become equal, so
// that memory grows with what is alive and not with what has happened.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "order.h"

namespace mpsforge::metal {

// A map from every offset of [0, length) to a value. Neighbouring offsets of equal value share one segment.
template <class Value>
class IntervalMap {
 public:
  explicit IntervalMap(size_t length) : length_(length) {
    if (length > 0) segments_.emplace(0, Value());
  }

  // Calls change(begin, end, value) with every segment of [begin, end), in order; value may be changed.
  template <class Change>
  void update(size_t begin, size_t end, Change change) {
    end = std::min(end, length_);
    if (begin >= end) return;
    const auto first = split(begin);
    const auto last = split(end);
    for (auto segment = first; segment != last;) {
      auto& [start, value] = *segment;
      ++segment;
      change(start, segment == segments_.end() ? length_ : segment->first, value);
    }
    merge(first == segments_.begin() ? first : std::prev(first), last);
  }

  // Calls visit(value) with every segment that overlaps [begin, end), in order.
  template <class Visit>
  void visit(size_t begin, size_t end, Visit visit) const {
    end = std::min(end, length_);
    if (begin >= end) return;
    for (auto segment = std::prev(segments_.upper_bound(begin)); segment != segments_.end() && segment->first < end;
         ++segment) {
      visit(segment->second);
    }
  }

  size_t length() const { return length_; }
  size_t size() const { return segments_.size(); }

  // Of the map itself, about: a node holds the pair, and the three pointers and the colour of a tree.
  size_t bytes() const { return segments_.size() * (sizeof(typename Segments::value_type) + 4 * sizeof(void*)); }

 private:
  using Segments = std::map<size_t, Value>;  // by first offset; each reaches up to the next one

  // The segment that begins at the offset, made if need be.
  typename Segments::iterator split(size_t offset) {
    if (offset >= length_) return segments_.end();
    const auto next = segments_.lower_bound(offset);
    if (next != segments_.end() && next->first == offset) return next;
    return segments_.emplace_hint(next, offset, std::prev(next)->second);
  }

  // Merges what is equal among the segments from first to last, both included.
  void merge(typename Segments::iterator first, typename Segments::iterator last) {
    while (first != last) {
      const auto next = std::next(first);
      const bool ends = next == last;
      if (next != segments_.end() && next->second == first->second) {
        segments_.erase(next);
      } else {
        first = next;
      }
      if (ends) return;
    }
  }

  size_t length_;
  Segments segments_;
};

inline bool operator==(const Site& a, const Site& b) {
  // The texts are interned or literals: equal ones of different address only keep two segments apart.
  return a.command == b.command && a.command_buffer == b.command_buffer && a.call == b.call && a.thread == b.thread &&
         a.queue == b.queue;
}

// The step of an actor in which it accessed a range. Step 0: there was no access.
struct Access {
  Actor actor = 0;
  uint64_t step = 0;
  Site site;

  bool operator==(const Access& other) const {
    return step == other.step && (step == 0 || (actor == other.actor && site == other.site));
  }
};

struct Accesses {
  Access write;
  std::vector<Access> reads;  // since the write: the last one of each actor, by actor

  bool operator==(const Accesses& other) const { return write == other.write && reads == other.reads; }
};

// A note has one number in all ranges that it was made for.
struct Note {
  uint64_t number;
  std::string text;
};

using Notes = std::vector<std::shared_ptr<const Note>>;  // newest last

// Notes kept for a range, and shown with a race. Two uses of a block are "reused, freed, reused, freed"; a finding of
// metal.h has 256 bytes for its history.
constexpr size_t kNotes = 4;

struct LastWrite {
  Access made{};
  size_t begin = 0, end = 0;
};

class Shadow {
 public:
  Shadow(std::string label, size_t length) : label(std::move(label)), accesses(length), notes(length) {}

  const std::string label;
  IntervalMap<Accesses> accesses;
  IntervalMap<Notes> notes;
  bool object = false;       // see Order::object
  LastWrite last_writes[2];  // by the CPU, by the GPU
  bool mixed = false;        // both wrote, and it was reported

  void note(size_t begin, size_t end, std::shared_ptr<const Note> note);
  // The newest notes of the range, newest last, or an empty text.
  std::string history(size_t begin, size_t end) const;
  size_t bytes() const;  // about
};

}  // namespace mpsforge::metal
