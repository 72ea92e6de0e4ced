#include "rebind.h"

#include <sys/mman.h>
#include <unistd.h>

namespace mpsforge::overlay {
namespace {

bool begins(const std::string& name, const char* start) { return name.rfind(start, 0) == 0; }

// Whether a name is one of the backend's: torch's library has all the others, too.
bool of_backend(const std::string& name) {
  for (const char* kind : {"__ZN", "__ZNK", "__ZTVN", "__ZTIN"}) {
    if (begins(name, (std::string(kind) + "2at3mps").c_str())) return true;
    if (begins(name, (std::string(kind) + "2at6native").c_str()) && name.find("mps") != std::string::npos) return true;
  }
  return begins(name, "_aoti_torch_mps_");  // what AOTInductor's models call branches into torch's copy
}

}  // namespace

MachoRebinding::MachoRebinding(const Process& process, const LoadedImage& old, const LoadedImage& own)
    : process_(process), old_(old) {
  const MachoImage theirs = read_macho(process, old), ours = read_macho(process, own);
  place_in_file(theirs);
  each_symbol(theirs, [&](const MachoSymbol& symbol) {
    if (!of_backend(symbol.name)) return;
    of_old_backend_.emplace(symbol.address, symbol.name);
    if (begins(symbol.name, "__ZTV")) of_old_backend_.emplace(symbol.address + 2 * sizeof(uintptr_t), symbol.name);
    if (symbol.exported) symbols_[symbol.name].theirs = symbol.address;
  });
  if (symbols_.empty()) throw std::runtime_error(old.path + " exports nothing of the backend");
  each_symbol(ours, [&](const MachoSymbol& symbol) {
    const auto found = symbols_.find(symbol.name);
    if (symbol.exported && found != symbols_.end()) found->second.ours = symbol.address;
  });
  for (const auto& [name, symbol] : symbols_) {
    if (symbol.ours) {
      ++result_.symbols;
    } else {
      result_.gone.push_back(name);
    }
  }
  initializers_ = held_initializers(ours);
}

std::vector<MachoRebinding::Write> MachoRebinding::plan(const LoadedImage& loaded) const {
  if (loaded.header == old_.header) return {};
  std::vector<Write> found;
  std::string refused;
  try {
    const MachoImage image = read_macho(process_, loaded);
    const auto pointers = pointers_of(image, [&](const std::string& name) { return symbols_.count(name) > 0; });
    for (const auto& pointer : pointers) {
      const Symbol& symbol = symbols_.at(pointer.symbol);
      const uintptr_t now = pointer_at(pointer.at);
      // A lazy one that is not bound yet leads into its own image; where it will lead, its name says.
      const bool unbound = pointer.lazy && image.holds(now);
      if (!unbound && now != symbol.theirs + pointer.addend) continue;
      if (symbol.ours) {
        found.push_back({pointer.at, symbol.ours + pointer.addend});
      } else {
        if (refused.find(pointer.symbol) == std::string::npos) refused += " " + pointer.symbol;
      }
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(loaded.path + ": " + error.what());
  }
  if (!refused.empty()) {
    throw std::runtime_error(loaded.path + " uses what this copy of the backend does not have:" + refused);
  }
  return found;
}

// Pointers of one page are near each other in what binds them.
void MachoRebinding::write(const std::vector<Write>& all, bool only_try) const {
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < all.size();) {
    const uintptr_t start = all[i].at & ~(page - 1);
    size_t last = i;
    uintptr_t end = start + page;
    for (; last < all.size() && (all[last].at & ~(page - 1)) == start; ++last) {
      if (all[last].at + sizeof(uintptr_t) > end) end = start + 2 * page;
    }
    const int protection = process_.region(start).protection;
    const bool change = !(protection & PROT_WRITE);
    if (change) process_.protect(start, end - start, PROT_READ | PROT_WRITE);
    for (; i < last; ++i) {
      if (!only_try) std::memcpy(reinterpret_cast<void*>(all[i].at), &all[i].value, sizeof all[i].value);
    }
    if (change) process_.protect(start, end - start, protection);
  }
}

void MachoRebinding::check() const {
  std::string refused;
  for (const auto& image : process_.images()) {
    try {
      write(plan(image), true);
    } catch (const std::runtime_error& error) {
      refused += std::string("\n  ") + error.what();
    }
  }
  if (!refused.empty()) throw std::runtime_error("loaded images cannot be led to this copy of the backend:" + refused);
}

void MachoRebinding::lead(const LoadedImage& image) {
  const auto found = plan(image);
  write(found, true);
  write(found, false);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!found.empty()) result_.pointers[image.path] += found.size();
}

Rebound MachoRebinding::result() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return result_;
}

std::vector<std::string> MachoRebinding::left() const {
  std::vector<std::string> found;
  for (const auto& loaded : process_.images()) {
    if (loaded.header == old_.header) continue;
    for (const auto& segment : read_macho(process_, loaded).segments) {
      if (!segment.data) continue;
      for (uint64_t at = 0; at + sizeof(uintptr_t) <= segment.size; at += sizeof(uintptr_t)) {
        const auto to = of_old_backend_.find(pointer_at(segment.start + at));
        if (to != of_old_backend_.end()) found.push_back(loaded.path + ": " + segment.name + " -> " + to->second);
      }
    }
  }
  return found;
}

void MachoRebinding::run_initializers() const {
  for (const uintptr_t one : initializers_) reinterpret_cast<void (*)()>(one)();
}

}  // namespace mpsforge::overlay
