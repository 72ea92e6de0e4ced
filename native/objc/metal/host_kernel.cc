#include "host_kernel.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "../engine.h"

namespace mpsforge::objc {
namespace {

// What the engine calls.
struct Entry {
  std::string name;  // the engine's
  std::string function;
  HostKernel kernel;
  TranslatedKernel translated;
  std::atomic<bool> ran{false};
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, HostKernel> exact;
  std::map<std::string, HostKernel> prefixes;                  // without the asterisk
  std::map<std::pair<uint64_t, std::string>, Entry*> entries;  // never freed: the engine's device lives for ever
  std::set<std::string> names;
};

// Never destroyed: kernels run until the process ends.
Registry& registry() {
  static Registry* const made = new Registry();
  return *made;
}

HostKernel find(const Registry& all, const std::string& function) {
  const auto exact = all.exact.find(function);
  if (exact != all.exact.end()) return exact->second;
  HostKernel best = nullptr;
  size_t longest = 0;
  for (const auto& [prefix, kernel] : all.prefixes) {
    if (function.compare(0, prefix.size(), prefix) != 0 || (best && prefix.size() < longest)) continue;
    best = kernel;
    longest = prefix.size();
  }
  return best;
}

void run(mpsforge_metal_call* call) {
  auto* entry = static_cast<Entry*>(api().context(call));
  if (entry->translated.kernel) {
    entry->ran.store(true, std::memory_order_relaxed);
    run_translated(entry->translated, call);
    return;
  }
  entry->kernel(KernelCall(entry->function, call));
}

}  // namespace

void register_host_kernel(const std::string& name, HostKernel kernel) {
  EngineCall guard;
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (!name.empty() && name.back() == '*') {
    all.prefixes[name.substr(0, name.size() - 1)] = kernel;
  } else {
    all.exact[name] = kernel;
  }
}

HostKernel find_host_kernel(const std::string& function) {
  EngineCall guard;
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  return find(all, function);
}

std::vector<std::string> host_kernel_names() {
  EngineCall guard;
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, kernel] : all.exact) names.push_back(name);
  return names;
}

const char* engine_kernel(uint64_t library, const std::string& function, const TranslatedKernel& translated) {
  EngineCall guard;
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  Entry*& entry = all.entries[{library, function}];
  if (entry) return entry->name.c_str();
  const HostKernel kernel = translated.kernel ? nullptr : find(all, function);
  if (!kernel && !translated.kernel) {
    all.entries.erase({library, function});
    return nullptr;
  }
  std::string name = function;
  if (!all.names.insert(name).second) {
    name += " of library " + std::to_string(library);
    all.names.insert(name);
  }
  entry = new Entry{name, function, kernel, translated};
  const mpsforge_metal_kernel made{entry->name.c_str(), run, nullptr};
  api().add_context_kernel(device(), &made, entry);
  return entry->name.c_str();
}

std::string translated_kernels_run() {
  EngineCall guard;
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  std::string names;
  for (const auto& [key, entry] : all.entries) {
    if (entry->translated.kernel && entry->ran.load(std::memory_order_relaxed)) names += entry->function + "\n";
  }
  return names;
}

KernelCall::KernelCall(const std::string& function, mpsforge_metal_call* call) : function_(function), call_(call) {
  api().grid(call_, &grid_);
}

void KernelCall::fail(const std::string& why) const {
  std::fprintf(stderr, "mpsforge: host kernel %s: %s\n", function_.c_str(), why.c_str());
  std::abort();
}

size_t KernelCall::threadgroup_memory(uint32_t index) const { return api().threadgroup_memory(call_, index); }

bool KernelCall::has_bytes(uint32_t index) const { return api().bytes(call_, index, nullptr) != nullptr; }

size_t KernelCall::buffer_length(uint32_t index) const { return api().argument_length(call_, index); }

size_t KernelCall::bytes_length(uint32_t index) const {
  size_t length = 0;
  api().bytes(call_, index, &length);
  return length;
}

void* KernelCall::memory(uint32_t index, size_t offset, size_t length, uint32_t access) const {
  void* found = api().argument(call_, index, offset, length, access);
  if (!found) {
    fail("argument " + std::to_string(index) + " has no " + std::to_string(length) + " bytes from " +
         std::to_string(offset) + " (" + std::to_string(buffer_length(index)) + " bytes bound)");
  }
  return found;
}

const void* KernelCall::constant(uint32_t index, size_t length) const {
  size_t given = 0;
  const void* bytes = api().bytes(call_, index, &given);
  if (!bytes) return memory(index, 0, length, MPSFORGE_METAL_READ);
  if (given < length) {
    fail("argument " + std::to_string(index) + " was given " + std::to_string(given) + " bytes and is read as " +
         std::to_string(length));
  }
  return bytes;
}

void* KernelCall::at(uint64_t address, size_t length, uint32_t access) const {
  void* found = api().address_argument(call_, address, length, access);
  if (!found) fail("no buffer in use has " + std::to_string(length) + " bytes at the address given");
  return found;
}

}  // namespace mpsforge::objc
