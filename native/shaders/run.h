// What translated Metal kernels, their runtime and the classes of Metal (native/objc/metal) share: one run of a kernel,
// and the table of a library. The kernels are LLVM code that translate/ makes of PyTorch's own; they reach
// a run by the functions of access.cc alone, so no offset of a member is written down twice.
//
// A pointer of a kernel is an address in the lower 48 bits, and the number of the slot that it was made from in the
// upper 16: arithmetic keeps the number, so that an access outside of its buffer is found wherever it leads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpsforge::shaders {

constexpr uint32_t kSlots = 1024;  // 0 is of no memory
// Variables in the threadgroup's memory: of a kernel that was compiled from source all in this slot, where races are
// looked for; of a translated one a slot each, from this one downwards.
constexpr uint32_t kOwnMemory = kSlots - 1;
constexpr uint32_t kVariables = 512;  // at most these, of the kernels that are translated together
constexpr uint32_t kArguments = 40;
constexpr uint32_t kSimdWidth = 32;  // as on Apple's GPUs
constexpr uint32_t kTagShift = 48;
constexpr uint64_t kAddress = (uint64_t{1} << kTagShift) - 1;

// Bits, as of MPSFORGE_METAL_READ and WRITE; and whether it is an atomic operation.
constexpr uint32_t kRead = 1, kWrite = 2, kAtomic = 4;

// Which bytes of a slot were touched, a bit for each; bits is nullptr where nobody wants to know. A page is marked if
// any of its bits may be set, so that what is large costs what is touched of it.
struct Touched {
  static constexpr uint32_t kPage = 12;  // bytes of a page, as a power of 2
  uint64_t* bits = nullptr;
  uint8_t* pages = nullptr;

  __attribute__((always_inline)) void add(uint64_t offset, uint64_t size) const {
    pages[offset >> kPage] = 1;
    pages[(offset + size - 1) >> kPage] = 1;
    for (; size > 64; offset += 64, size -= 64) add_word(offset, 64);
    add_word(offset, size);
  }

 private:
  __attribute__((always_inline)) void add_word(uint64_t offset, uint64_t size) const {
    const uint64_t mask = ~uint64_t{0} >> (64 - size), shift = offset % 64;
    bits[offset / 64] |= mask << shift;
    if (shift + size > 64) bits[offset / 64 + 1] |= mask >> (64 - shift);
  }
};

// Memory that a kernel may reach.
struct Slot {
  uint64_t base = 0;  // with the slot's number in the upper bits
  uint64_t length = 0;
  Touched read, written;
  bool of_group = false;  // each threadgroup has memory of its own there
};

// Why a kernel's threads did what they must not do.
enum class Problem : uint32_t { OutOfRange, Divergence, Race };

struct Refused {
  Problem problem;
  uint32_t slot;
  uint64_t offset;  // from the slot's first byte
  uint64_t size;
  uint32_t access;
  uint32_t thread[3];  // in the grid
  uint32_t other[3];   // the earlier thread of a race
  uint32_t other_access;
};

struct Fibers;
struct Races;

// One dispatch.
struct Run {
  Slot slots[kSlots];
  uint32_t slot_count = 1;
  uint32_t own = kOwnMemory;       // the first slot of variables in threadgroup memory
  uint64_t arguments[kArguments];  // by their place in the kernel's list: pointers, with their slots' numbers
  uint32_t threads[3];             // of the grid
  uint32_t group[3];               // threads of a whole threadgroup
  uint32_t this_group[3];          // threads of this one, which is smaller at the grid's end
  uint32_t groups[3];
  uint32_t position[3];  // of this threadgroup
  uint32_t* thread;      // in this threadgroup, which runs now
  Fibers* fibers;        // nullptr: threads run one after another
  bool check_races;      // between the threads of the grid
  Races* races;          // nullptr: not checked
  // The frame that called for the check of an access which is refused; of kernels that were compiled from source.
  const void* const* frame;
  void* owner;  // what resolve and refuse are given
  // The slot of memory at an address that was data; 0: no buffer that the kernel may reach.
  uint32_t (*resolve)(void* owner, uint64_t address);
  void (*refuse)(void* owner, const Refused& what);
};

// What a thread of a translated kernel can ask, but for its memory.
struct Thread {
  uint32_t in_grid[3], in_group[3];                         // positions of the thread
  uint32_t group_in_grid[3];                                // position of its threadgroup
  uint32_t threads[3], group[3], this_group[3], groups[3];  // as of Run
  uint32_t index, lane, simd;  // in the threadgroup, in the SIMD group, and that group's in the threadgroup
  uint32_t lanes, simds;       // of a SIMD group, and those of the threadgroup
};

// What a kernel's argument is, from its metadata.
enum class ArgumentKind : uint32_t { Buffer, Threadgroup, Position };

struct Argument {
  ArgumentKind kind;
  uint32_t index;   // of the binding
  uint32_t access;  // bits
  uint32_t size;    // bytes of the type that it points to; 0: not known
  const char* type;
  const char* name;
};

struct Kernel {
  const char* name;
  // Runs count threads of the threadgroup from first on, one after another.
  void (*threads)(Run* run, uint32_t first, uint32_t count);
  uint32_t waits;  // 1: it has barriers or functions of SIMD groups, so its threads take turns
  uint32_t argument_count;
  const Argument* arguments;
};

// As PyTorch names the section of its library that it was taken from.
struct Library {
  const char* section;
  uint32_t kernel_count;
  const Kernel* kernels;
};

struct Table {
  uint32_t format;  // kFormat
  uint32_t library_count;
  const Library* libraries;
};
constexpr uint32_t kFormat = 4;

}  // namespace mpsforge::shaders

extern "C" {
// Of the shared library with the kernels. Weak: a host build may have none.
__attribute__((weak)) const mpsforge::shaders::Table* mpsforge_shaders();
// Runs all threads of the dispatch that run describes: threads, group, arguments and slots are filled in.
__attribute__((weak)) void mpsforge_shaders_run(const mpsforge::shaders::Kernel* kernel, mpsforge::shaders::Run* run);
}
