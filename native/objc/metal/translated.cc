#include "translated.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "../engine.h"

namespace mpsforge::objc {
namespace {

using shaders::kAddress;
using shaders::kTagShift;
using shaders::Slot;

constexpr size_t kTold = 8;  // findings of one dispatch
constexpr size_t kAlignment = 256;

// Bits of bytes, one after the other, of a slot. Large ones cost what is touched of them: the system clears pages.
class Bits {
 public:
  explicit Bits(size_t length) : words_((length + 63) / 64), bits_(make(words_)) {}
  ~Bits() { std::free(bits_); }
  Bits(Bits&& other) noexcept : words_(other.words_), bits_(other.bits_) { other.bits_ = nullptr; }
  Bits& operator=(Bits&&) = delete;

  uint64_t* words() const { return bits_; }

  void take_out(const Bits& other) {
    for (size_t i = 0; i < words_; ++i) bits_[i] &= ~other.bits_[i];
  }

  // Calls use with the first byte and the length of each range, in their order.
  template <class Use>
  void each_range(Use use) const {
    size_t first = 0;
    bool inside = false;
    for (size_t i = 0; i < words_; ++i) {
      const uint64_t word = bits_[i];
      if (word == (inside ? ~uint64_t{0} : 0)) continue;
      for (size_t bit = 0; bit < 64; ++bit) {
        const bool set = word >> bit & 1;
        if (set == inside) continue;
        if (inside) use(first, 64 * i + bit - first);
        first = 64 * i + bit;
        inside = set;
      }
    }
    if (inside) use(first, 64 * words_ - first);
  }

 private:
  static uint64_t* make(size_t words) {
    auto* made = static_cast<uint64_t*>(std::calloc(words + 1, sizeof(uint64_t)));
    if (!made) fail("no memory to note what a kernel touches");
    return made;
  }

  size_t words_;
  uint64_t* bits_;
};

// One dispatch of a kernel: what its slots are.
class Dispatch {
 public:
  Dispatch(const shaders::Kernel& kernel, mpsforge_metal_call* call, shaders::Run& run)
      : kernel_(kernel), call_(call), run_(run), records_(environment().config.check_order != 0) {
    run_.slot_count = 1;
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

  // Tells the checker what was touched.
  void declare() {
    for (uint32_t slot = 1; slot < run_.slot_count; ++slot) {
      const Place& place = places_[slot];
      if (!run_.slots[slot].read) continue;
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
    slot = {static_cast<uint64_t>(number) << kTagShift | address, length, nullptr, nullptr};
    places_.push_back({kind, argument, bits_.size()});
    if (records_ && (kind == Place::Buffer || kind == Place::Address)) {
      bits_.emplace_back(length);
      bits_.emplace_back(length);
      slot.read = bits_[bits_.size() - 2].words();
      slot.written = bits_.back().words();
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
      if (first + size > length) size = length - first;
      if (place.kind == Place::Buffer) {
        api().argument(call_, kernel_.arguments[place.argument].index, first, size, access);
      } else {
        api().address_argument(call_, base + first, size, access);
      }
    });
  }

  void refuse(const shaders::Refused& what) {
    if (told_++ >= kTold) return;
    const std::string thread = "thread (" + std::to_string(what.thread[0]) + ", " + std::to_string(what.thread[1]) +
                               ", " + std::to_string(what.thread[2]) + ")";
    if (what.problem == shaders::Problem::Divergence) {
      api().refuse(call_, MPSFORGE_METAL_DIVERGENCE, "a threadgroup", "");
      return;
    }
    const Place place = what.slot < places_.size() ? places_[what.slot] : Place{Place::Nothing, 0, 0};
    std::string name = "an address of no buffer that it may reach";
    if (place.kind == Place::Address) name = "a buffer that it reaches by address";
    if (place.kind != Place::Address && place.kind != Place::Nothing) {
      const shaders::Argument& argument = kernel_.arguments[place.argument];
      name = (place.kind == Place::Threadgroup ? "threadgroup memory " : "argument ") + std::to_string(argument.index) +
             " (" + argument.name + ")";
    }
    std::string detail = thread + (what.access & shaders::kWrite ? " writes " : " reads ") + std::to_string(what.size) +
                         " bytes at " + std::to_string(static_cast<int64_t>(what.offset));
    if (place.kind != Place::Nothing) detail += " of " + std::to_string(run_.slots[what.slot].length);
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

const shaders::Library* translated_library(const std::string& section) {
  if (!mpsforge_shaders) return nullptr;
  const shaders::Table* table = mpsforge_shaders();
  if (table->format != shaders::kFormat) fail("the translated kernels are of another version of mpsforge");
  for (uint32_t i = 0; i < table->library_count; ++i) {
    if (section == table->libraries[i].section) return &table->libraries[i];
  }
  return nullptr;
}

const shaders::Kernel* translated_kernel(const shaders::Library& library, const std::string& function) {
  for (uint32_t i = 0; i < library.kernel_count; ++i) {
    if (function == library.kernels[i].name) return &library.kernels[i];
  }
  return nullptr;
}

void run_translated(const shaders::Kernel& kernel, mpsforge_metal_call* call) {
  // 32 KB, of which few slots are used: it is kept for the thread's next dispatch.
  static thread_local shaders::Run* run = nullptr;
  static thread_local struct Owner {
    ~Owner() { delete run; }
  } owner;
  (void)owner;
  if (!run) run = new shaders::Run();
  Dispatch dispatch(kernel, call, *run);
  mpsforge_shaders_run(&kernel, run);
  dispatch.declare();
}

}  // namespace mpsforge::objc
