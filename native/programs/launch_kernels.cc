// Launches kernels of a library that fork/hostbuild/shaders has translated, without Metal: for tests in Python, which
// load this as a shared library.
#include <dlfcn.h>

#include <cstring>
#include <sstream>
#include <string>

#include "shaders/run.h"

using namespace mpsforge::shaders;

namespace {

decltype(&mpsforge_shaders) table = nullptr;
decltype(&mpsforge_shaders_run) start = nullptr;
std::string answer;  // of the last call

const Kernel* find(const char* name) {
  for (uint32_t i = 0; i < table()->library_count; ++i) {
    const Library& library = table()->libraries[i];
    for (uint32_t k = 0; k < library.kernel_count; ++k) {
      if (std::strcmp(library.kernels[k].name, name) == 0) return &library.kernels[k];
    }
  }
  return nullptr;
}

void refuse(void*, const Refused& what) {
  static const char* const names[] = {"out of range", "divergence", "race"};
  std::ostringstream text;
  text << names[static_cast<uint32_t>(what.problem)] << ": slot " << what.slot << ", "
       << static_cast<int64_t>(what.offset) << " and " << what.size << " bytes, access " << what.access << ", thread ("
       << what.thread[0] << ", " << what.thread[1] << ", " << what.thread[2] << ")\n";
  answer += text.str();
}

uint32_t resolve(void* owner, uint64_t address) {
  const Run& run = *static_cast<Run*>(owner);
  for (uint32_t slot = 1; slot < run.slot_count; ++slot) {
    if (address - (run.slots[slot].base & kAddress) < run.slots[slot].length) return slot;
  }
  return 0;
}

}  // namespace

extern "C" {

// Memory that a kernel may reach, of an argument by its place in the kernel's list; beyond those, by its address.
struct mpsforge_memory {
  void* bytes;
  uint64_t length;
};

// What the library has: a line for each kernel and one for each of its arguments. nullptr: it cannot be loaded.
const char* mpsforge_load(const char* path) {
  void* loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return nullptr;
  table = reinterpret_cast<decltype(table)>(dlsym(loaded, "mpsforge_shaders"));
  start = reinterpret_cast<decltype(start)>(dlsym(loaded, "mpsforge_shaders_run"));
  if (!table || !start || table()->format != kFormat) return nullptr;
  std::ostringstream text;
  for (uint32_t i = 0; i < table()->library_count; ++i) {
    const Library& library = table()->libraries[i];
    for (uint32_t k = 0; k < library.kernel_count; ++k) {
      const Kernel& kernel = library.kernels[k];
      text << "kernel\t" << kernel.name << "\n";
      for (uint32_t n = 0; n < kernel.argument_count; ++n) {
        const Argument& a = kernel.arguments[n];
        text << static_cast<uint32_t>(a.kind) << "\t" << a.access << "\t" << a.size << "\t" << a.type << "\t" << a.name
             << "\n";
      }
    }
  }
  answer = text.str();
  return answer.c_str();
}

// Runs a kernel, and returns what was found: nothing, if all is right.
const char* mpsforge_launch(const char* name, const mpsforge_memory* memory, uint32_t count, const uint32_t* threads,
                            const uint32_t* group, int check_races) {
  static Run run;
  const Kernel* kernel = find(name);
  answer.clear();
  if (!kernel) return "there is no such kernel";
  run.slot_count = 1;
  for (uint32_t i = 0; i < count; ++i) {
    if (i < kernel->argument_count && kernel->arguments[i].kind == ArgumentKind::Position) continue;
    const uint32_t slot = run.slot_count++;
    run.slots[slot] = {uint64_t{slot} << kTagShift | reinterpret_cast<uint64_t>(memory[i].bytes),
                       memory[i].length,
                       {},
                       {},
                       i < kernel->argument_count && kernel->arguments[i].kind == ArgumentKind::Threadgroup};
    if (i < kernel->argument_count) run.arguments[i] = run.slots[slot].base;
  }
  for (int d = 0; d < 3; ++d) {
    run.threads[d] = threads[d];
    run.group[d] = group[d];
  }
  run.check_races = check_races != 0;
  run.owner = &run;
  run.resolve = resolve;
  run.refuse = refuse;
  start(kernel, &run);
  return answer.c_str();
}
}
