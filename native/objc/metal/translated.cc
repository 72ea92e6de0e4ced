#include "translated.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "../engine.h"

namespace mpsforge::objc {
namespace {

using shaders::kAddress;
using shaders::kTagShift;
using shaders::Slot;
using shaders::Touched;

constexpr size_t kTold = 8;  // findings of one dispatch
constexpr size_t kAlignment = 256;

// Bits of a slot's bytes (shaders::Touched), all 0 at first. They are kept for later dispatches and cleared only where
// they were set, so that neither large buffers nor many dispatches cost what is not touched.
class Bits {
 public:
  explicit Bits(size_t pages) : pages_(pages) {
    memory_ = static_cast<uint64_t*>(std::calloc(words() + (pages + 7) / 8, sizeof(uint64_t)));
    if (!memory_) fail("no memory to note what a kernel touches");
  }
  ~Bits() { std::free(memory_); }
  Bits(Bits&& other) noexcept : pages_(other.pages_), memory_(other.memory_) { other.memory_ = nullptr; }
  Bits& operator=(Bits&& other) noexcept {
    std::swap(pages_, other.pages_);
    std::swap(memory_, other.memory_);
    return *this;
  }

  // For so many bytes.
  static Bits take(size_t length) {
    const size_t pages = ((length + kPadding) >> Touched::kPage) + 1;
    std::vector<Bits>& kept = kept_bits();
    const auto fits = std::find_if(kept.begin(), kept.end(), [pages](const Bits& bits) {
      return bits.pages_ >= pages && bits.pages_ <= 4 * pages;  // all page marks are looked at
    });
    if (fits == kept.end()) return Bits(pages);
    Bits taken = std::move(*fits);
    kept.erase(fits);
    return taken;
  }

  static void give_back(Bits bits) {
    std::vector<Bits>& kept = kept_bits();
    bits.for_each_page(
        [&](size_t page) { std::memset(bits.memory_ + page * kPageWords, 0, kPageWords * sizeof(uint64_t)); });
    std::memset(bits.pages(), 0, bits.pages_);
    if (kept.size() == kKept) kept.erase(kept.begin());
    kept.push_back(std::move(bits));
  }

  Touched touched() const { return {memory_, pages()}; }

  void take_out(const Bits& other) {
    for_each_page([&](size_t page) {
      if (page >= other.pages_ || !other.pages()[page]) return;
      for (size_t i = page * kPageWords; i < (page + 1) * kPageWords; ++i) memory_[i] &= ~other.memory_[i];
    });
  }

  // Calls use with the first byte and the length of each range, in their order.
  template <class Use>
  void each_range(Use use) const {
    size_t first = 0, next = 0;  // of a range that is not over, if next is not 0
    const auto close = [&] {
      if (next > 0) use(first, next - first);
      next = 0;
    };
    for_each_page([&](size_t page) {
      for (size_t i = page * kPageWords; i < (page + 1) * kPageWords; ++i) {
        for (uint64_t rest = memory_[i]; rest != 0;) {
          const auto from = static_cast<size_t>(__builtin_ctzll(rest));
          const uint64_t after = ~rest >> from;
          const size_t count = after == 0 ? 64 - from : static_cast<size_t>(__builtin_ctzll(after));
          if (next == 0 || next != 64 * i + from) {
            close();
            first = 64 * i + from;
          }
          next = 64 * i + from + count;
          rest = from + count == 64 ? 0 : rest >> (from + count) << (from + count);
        }
      }
    });
    close();
  }

 private:
  static constexpr size_t kPageWords = (size_t{1} << Touched::kPage) / 64;
  static constexpr size_t kKept = 32;
  static constexpr size_t kPadding = 8;  // that may be touched beyond a slot

  static std::vector<Bits>& kept_bits() {
    static thread_local std::vector<Bits> kept;
    return kept;
  }

  size_t words() const { return pages_ * kPageWords; }
  uint8_t* pages() const { return reinterpret_cast<uint8_t*>(memory_ + words()); }

  template <class Use>
  void for_each_page(Use use) const {
    const uint8_t* const end = pages() + pages_;
    const uint8_t* page = pages();
    while ((page = static_cast<const uint8_t*>(std::memchr(page, 1, static_cast<size_t>(end - page))))) {
      use(static_cast<size_t>(page++ - pages()));
    }
  }

  size_t pages_;
  uint64_t* memory_;
};

std::string thread_text(const uint32_t (&thread)[3]) {
  return "thread (" + std::to_string(thread[0]) + ", " + std::to_string(thread[1]) + ", " + std::to_string(thread[2]) +
         ")";
}

std::string does(uint32_t access) {
  const char* const atomic = access & shaders::kAtomic ? " atomically" : "";
  return std::string(atomic) + (access & shaders::kWrite ? " writes " : " reads ");
}

// One dispatch of a kernel: what its slots are.
class Dispatch {
 public:
  Dispatch(const shaders::Kernel& kernel, mpsforge_metal_call* call, shaders::Run& run)
      : kernel_(kernel), call_(call), run_(run), records_(environment().config.check_order != 0) {
    run_.slot_count = 1;
    run_.check_races = environment().check_kernels;
    places_.push_back({Place::Nothing, 0, 0});
    run_.owner = this;
    run_.resolve = [](void* self, uint64_t address) { return static_cast<Dispatch*>(self)->resolve(address); };
    run_.refuse = [](void* self, const shaders::Refused& what) { static_cast<Dispatch*>(self)->refuse(what); };
    mpsforge_metal_grid grid;
    api().grid(call_, &grid);
    for (int d = 0; d < 3; ++d) {
      run_.threads[d] = static_cast<uint32_t>(grid.threads[d]);
      run_.group[d] = static_cast<uint32_t>(grid.group[d]);
    }
    for (uint32_t i = 0; i < kernel.argument_count; ++i) bind(i);
  }

  ~Dispatch() {
    for (Bits& bits : bits_) Bits::give_back(std::move(bits));
  }

  // Reports to the checker what was touched.
  void declare() {
    for (uint32_t slot = 1; slot < run_.slot_count; ++slot) {
      const Place& place = places_[slot];
      if (!run_.slots[slot].read.bits) continue;
      Bits& read = bits_[place.bits];
      const Bits& written = bits_[place.bits + 1];
      read.take_out(written);
      declare(slot, read, MPSFORGE_METAL_READ);
      declare(slot, written, MPSFORGE_METAL_WRITE);
    }
  }

 private:
  struct Place {
    enum Kind { Nothing, Buffer, Constant, Threadgroup, Address } kind;
    uint32_t argument;  // of the kernel's list
    size_t bits;        // of what was read; the next is of what was written
  };

  uint32_t add(Place::Kind kind, uint32_t argument, uint64_t address, size_t length) {
    const uint32_t number = run_.slot_count++;
    if (number >= shaders::kSlots) fail("a kernel reaches more than %u buffers", shaders::kSlots);
    Slot& slot = run_.slots[number];
    slot = {static_cast<uint64_t>(number) << kTagShift | address, length, {}, {}, kind == Place::Threadgroup};
    places_.push_back({kind, argument, bits_.size()});
    if (records_ && (kind == Place::Buffer || kind == Place::Address)) {
      bits_.push_back(Bits::take(length));
      slot.read = bits_.back().touched();
      bits_.push_back(Bits::take(length));
      slot.written = bits_.back().touched();
    }
    return number;
  }

  void bind(uint32_t place) {
    const shaders::Argument& argument = kernel_.arguments[place];
    uint64_t address = 0;
    size_t length = 0;
    Place::Kind kind = Place::Buffer;
    if (argument.kind == shaders::ArgumentKind::Position) return;
    if (argument.kind == shaders::ArgumentKind::Threadgroup) {
      kind = Place::Threadgroup;
      length = api().threadgroup_memory(call_, argument.index);
      memory_.emplace_back(length + kAlignment, 0xff);  // not a number, in any type
      address = (reinterpret_cast<uint64_t>(memory_.back().data()) + kAlignment - 1) / kAlignment * kAlignment;
    } else if (const void* bytes = api().bytes(call_, argument.index, &length)) {
      kind = Place::Constant;
      address = reinterpret_cast<uint64_t>(bytes);
    } else {
      mpsforge_metal_reach reach{};
      api().reach(call_, argument.index, &reach);
      address = reach.address;
      length = reach.length;
    }
    run_.arguments[place] = run_.slots[add(kind, place, address, length)].base;
  }

  // The buffer at an address that the kernel has read from memory.
  uint32_t resolve(uint64_t address) {
    for (uint32_t slot = 1; slot < run_.slot_count; ++slot) {
      const Place::Kind kind = places_[slot].kind;
      if (kind != Place::Buffer && kind != Place::Address) continue;
      if (address - (run_.slots[slot].base & kAddress) < run_.slots[slot].length) return slot;
    }
    mpsforge_metal_reach reach;
    for (size_t n = MPSFORGE_METAL_ARGUMENTS; api().reach(call_, n, &reach); ++n) {
      if (address - reach.address < reach.length) return add(Place::Address, 0, reach.address, reach.length);
    }
    return 0;
  }

  void declare(uint32_t slot, const Bits& touched, uint32_t access) {
    const Place& place = places_[slot];
    const uint64_t base = run_.slots[slot].base & kAddress;
    const size_t length = run_.slots[slot].length;
    touched.each_range([&](size_t first, size_t size) {
      size = std::min(size, length - first);
      if (place.kind == Place::Buffer) {
        api().argument(call_, kernel_.arguments[place.argument].index, first, size, access);
      } else {
        api().address_argument(call_, base + first, size, access);
      }
    });
  }

  void refuse(const shaders::Refused& what) {
    if (told_++ >= kTold) return;
    if (what.problem == shaders::Problem::Divergence) {
      api().refuse(call_, MPSFORGE_METAL_DIVERGENCE, "a threadgroup", "");
      return;
    }
    const Place place = what.slot < places_.size() ? places_[what.slot] : Place{Place::Nothing, 0, 0};
    std::string name = "an address of no buffer that it may reach";
    if (place.kind == Place::Address) name = "a buffer that it reaches by address";
    if (what.slot >= run_.own && what.slot < shaders::kSlots) name = "threadgroup memory of its own";
    if (place.kind != Place::Address && place.kind != Place::Nothing) {
      const shaders::Argument& argument = kernel_.arguments[place.argument];
      name = (place.kind == Place::Threadgroup ? "threadgroup memory " : "argument ") + std::to_string(argument.index) +
             " (" + argument.name + ")";
    }
    std::string detail = thread_text(what.thread) + does(what.access) + std::to_string(what.size) + " bytes at " +
                         std::to_string(static_cast<int64_t>(what.offset));
    if (place.kind != Place::Nothing) detail += " of " + std::to_string(run_.slots[what.slot].length);
    if (what.problem == shaders::Problem::Race) {
      detail += ", " + thread_text(what.other) + does(what.other_access) + "them, too";
      api().refuse(call_, MPSFORGE_METAL_KERNEL_RACE, name.c_str(), detail.c_str());
      return;
    }
    api().refuse(call_, MPSFORGE_METAL_OUT_OF_RANGE, name.c_str(), detail.c_str());
  }

  const shaders::Kernel& kernel_;
  mpsforge_metal_call* const call_;
  shaders::Run& run_;
  const bool records_;
  std::vector<Place> places_;
  std::vector<Bits> bits_;
  std::vector<std::vector<uint8_t>> memory_;  // of threadgroups
  size_t told_ = 0;
};

}  // namespace

Translated translated_library(const std::string& section) {
  if (!mpsforge_shaders) return {};
  const shaders::Table* table = mpsforge_shaders();
  if (table->format != shaders::kFormat) fail("the translated kernels are of another version of mpsforge");
  for (uint32_t i = 0; i < table->library_count; ++i) {
    if (section == table->libraries[i].section) return {&table->libraries[i], mpsforge_shaders_run};
  }
  return {};
}

TranslatedKernel translated_kernel(const Translated& translated, const std::string& function) {
  for (uint32_t i = 0; i < translated.library->kernel_count; ++i) {
    const shaders::Kernel& kernel = translated.library->kernels[i];
    if (function == kernel.name) return {&kernel, translated.run};
  }
  return {};
}

void run_translated(const TranslatedKernel& translated, mpsforge_metal_call* call) {
  // 32 KB, of which few slots are used: it is kept for the thread's next dispatch.
  static thread_local shaders::Run* run = nullptr;
  static thread_local struct Owner {
    ~Owner() { delete run; }
  } owner;
  if (!run) run = new shaders::Run();
  Dispatch dispatch(*translated.kernel, call, *run);
  translated.run(translated.kernel, run);
  dispatch.declare();
}

}  // namespace mpsforge::objc
