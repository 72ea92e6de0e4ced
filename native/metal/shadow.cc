#include "shadow.h"

#include <set>

namespace mpsforge::metal {

void Shadow::note(size_t begin, size_t end, std::shared_ptr<const Note> note) {
  notes.update(begin, end, [&](size_t, size_t, Notes& kept) {
    if (kept.size() == kNotes) kept.erase(kept.begin());
    kept.push_back(note);
  });
}

std::string Shadow::history(size_t begin, size_t end) const {
  std::map<uint64_t, const Note*> found;
  notes.visit(begin, end, [&](const Notes& kept) {
    for (const auto& note : kept) found.emplace(note->number, note.get());
    while (found.size() > kNotes) found.erase(found.begin());
  });
  std::string joined;
  for (const auto& [number, note] : found) {
    if (!joined.empty()) joined += "; ";
    joined += note->text;
  }
  return joined;
}

size_t Shadow::bytes() const {
  size_t total = sizeof(*this) + label.size() + accesses.bytes() + notes.bytes();
  accesses.visit(0, accesses.length(), [&](const Accesses& kept) { total += kept.reads.capacity() * sizeof(Access); });
  std::set<const Note*> texts;
  notes.visit(0, notes.length(), [&](const Notes& kept) {
    total += kept.capacity() * sizeof(Notes::value_type);
    for (const auto& note : kept) {
      if (texts.insert(note.get()).second) total += sizeof(Note) + note->text.size();
    }
  });
  return total;
}

}  // namespace mpsforge::metal
