// Symbol pointers on ELF. What is loaded already has pointers (GLOB_DAT, JUMP_SLOT, absolute relocations by name),
// which are written again. What is loaded later asks the dynamic linker, which reads the old copy's symbol table: its
// entries lead to this copy, and those that this copy does not have are undefined in it, so that the dynamic linker
// refuses who needs one, by name.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <unordered_map>

#include "rebind.h"

namespace mpsforge::overlay {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kAbsolute = R_X86_64_64, kData = R_X86_64_GLOB_DAT, kFunction = R_X86_64_JUMP_SLOT;
#elif defined(__aarch64__)
constexpr uint32_t kAbsolute = R_AARCH64_ABS64, kData = R_AARCH64_GLOB_DAT, kFunction = R_AARCH64_JUMP_SLOT;
#endif

// In the dynamic section of this library, in the place of DT_INIT_ARRAY and DT_INIT_ARRAYSZ
// (fork/hostbuild/host/overlay.go).
constexpr ElfW(Sxword) kInitializers = 0x6d707300, kInitializersSize = 0x6d707301;

struct Image {
  std::string path;
  uintptr_t base = 0, first = 0, last = 0;
  std::vector<ElfW(Phdr)> segments;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* hash = nullptr;  // DT_GNU_HASH
  std::vector<std::pair<const ElfW(Rela)*, size_t>> relocations;
  uintptr_t initializers = 0;
  size_t initializers_size = 0;

  bool holds(uintptr_t address) const { return address >= first && address < last; }
};

// Where a dynamic section has an address, the dynamic linker has added the base already; the kernel's vDSO is left as
// it is.
Image read(const dl_phdr_info& info) {
  Image image;
  image.path = info.dlpi_name;
  image.base = info.dlpi_addr;
  image.segments.assign(info.dlpi_phdr, info.dlpi_phdr + info.dlpi_phnum);
  image.first = UINTPTR_MAX;
  const ElfW(Dyn)* dynamic = nullptr;
  for (const auto& segment : image.segments) {
    const uintptr_t start = image.base + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      image.first = std::min(image.first, start);
      image.last = std::max(image.last, start + segment.p_memsz);
    }
    if (segment.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
  }
  const ElfW(Rela) * tables[2] = {};
  size_t sizes[2] = {};
  for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
    const auto address = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) image.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (dynamic->d_tag == DT_STRTAB) image.names = reinterpret_cast<const char*>(address);
    if (dynamic->d_tag == DT_GNU_HASH) image.hash = reinterpret_cast<const uint32_t*>(address);
    if (dynamic->d_tag == DT_RELA) tables[0] = reinterpret_cast<const ElfW(Rela)*>(address);
    if (dynamic->d_tag == DT_JMPREL) tables[1] = reinterpret_cast<const ElfW(Rela)*>(address);
    if (dynamic->d_tag == DT_RELASZ) sizes[0] = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_PLTRELSZ) sizes[1] = dynamic->d_un.d_val;
    if (dynamic->d_tag == kInitializers) image.initializers = image.base + address;
    if (dynamic->d_tag == kInitializersSize) image.initializers_size = dynamic->d_un.d_val;
  }
  for (int i = 0; i < 2; ++i) {
    if (tables[i]) image.relocations.emplace_back(tables[i], sizes[i] / sizeof(ElfW(Rela)));
  }
  if (!image.holds(reinterpret_cast<uintptr_t>(image.symbols))) image.relocations.clear();
  return image;
}

std::vector<Image> images() {
  std::vector<Image> all;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        static_cast<std::vector<Image>*>(to)->push_back(read(*info));
        return 0;
      },
      &all);
  return all;
}

const Image& find(const std::vector<Image>& all, const std::function<bool(const Image&)>& wanted,
                  const std::string& what) {
  for (const auto& image : all) {
    if (wanted(image)) return image;
  }
  throw std::runtime_error("no image " + what + " in this process");
}

const Image& own_of(const std::vector<Image>& all) {
  const auto here = reinterpret_cast<uintptr_t>(&own_of);
  return find(all, [&](const Image& image) { return image.holds(here); }, "of this copy");
}

// What an image defines for others. mpsforge's own symbols are each copy's.
std::unordered_map<std::string, ElfW(Sym) *> defined(const Image& image) {
  std::unordered_map<std::string, ElfW(Sym)*> found;
  if (!image.hash) throw std::runtime_error(image.path + " has no DT_GNU_HASH");
  const uint32_t buckets = image.hash[0], first = image.hash[1], bloom = image.hash[2];
  const auto* bucket = reinterpret_cast<const uint32_t*>(reinterpret_cast<const ElfW(Addr)*>(image.hash + 4) + bloom);
  const uint32_t* chain = bucket + buckets;
  for (uint32_t b = 0; b < buckets; ++b) {
    for (uint32_t i = bucket[b]; i >= first; ++i) {
      auto* symbol = const_cast<ElfW(Sym)*>(image.symbols + i);
      const char* name = image.names + symbol->st_name;
      const auto type = ELF64_ST_TYPE(symbol->st_info);
      if (symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_OBJECT) &&
          std::strncmp(name, "mpsforge_", 9) != 0) {
        found.emplace(name, symbol);
      }
      if (chain[i - first] & 1) break;
    }
  }
  return found;
}

// Memory that may be written until the end of the scope. Its protection is what the segment's flags and RELRO made it.
class Writable {
 public:
  Writable(const Image& image, uintptr_t address, size_t size) {
    const uintptr_t page = sysconf(_SC_PAGESIZE);
    start_ = address & ~(page - 1);
    size_ = ((address + size + page - 1) & ~(page - 1)) - start_;
    for (const auto& segment : image.segments) {
      const uintptr_t from = image.base + segment.p_vaddr;
      if (address < from || address >= from + segment.p_memsz) continue;
      if (segment.p_type == PT_LOAD) {
        protection_ |= (segment.p_flags & PF_R ? PROT_READ : 0) | (segment.p_flags & PF_W ? PROT_WRITE : 0) |
                       (segment.p_flags & PF_X ? PROT_EXEC : 0);
      }
      if (segment.p_type == PT_GNU_RELRO) relro_ = true;
    }
    if (relro_) protection_ &= ~PROT_WRITE;
    if (!(protection_ & PROT_WRITE) && mprotect(reinterpret_cast<void*>(start_), size_, PROT_READ | PROT_WRITE) != 0) {
      throw std::runtime_error("mprotect in " + image.path + ": " + std::strerror(errno));
    }
  }
  ~Writable() {
    if (!(protection_ & PROT_WRITE)) mprotect(reinterpret_cast<void*>(start_), size_, protection_);
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;

 private:
  uintptr_t start_ = 0;
  size_t size_ = 0;
  int protection_ = 0;
  bool relro_ = false;
};

// Whether a name is one of the backend's, and not of a template that anybody's instance serves.
bool of_backend(const std::string& name) {
  for (const char* start :
       {"_ZN2at3mps", "_ZNK2at3mps", "_ZN2at6native", "_ZNK2at6native", "_ZTVN2at3mps", "_ZTVN2at6native"}) {
    if (name.rfind(start, 0) == 0) return true;
  }
  return false;
}

struct Pointer {
  const Image* image;
  uintptr_t at, value;
};

}  // namespace

std::string image_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

struct Rebinding::Plan {
  std::vector<Image> all = images();
  const Image* old = nullptr;
  const Image* own = nullptr;
  std::unordered_map<std::string, ElfW(Sym)*> theirs, ours;
  std::vector<Pointer> pointers;
  uintptr_t first = UINTPTR_MAX, last = 0;  // of the old copy's symbols
  Rebound result;
};

Rebinding::Rebinding(const std::string& stock) : plan_(new Plan) {
  Plan& p = *plan_;
  p.old = &find(p.all, [&](const Image& image) { return image.path == stock; }, stock);
  p.own = &own_of(p.all);
  p.theirs = defined(*p.old);
  p.ours = defined(*p.own);
  std::string refused;
  for (const auto& image : p.all) {
    if (&image == p.old || &image == p.own) continue;
    for (const auto& [table, count] : image.relocations) {
      for (size_t i = 0; i < count; ++i) {
        const auto type = ELF64_R_TYPE(table[i].r_info);
        if (type != kAbsolute && type != kData && type != kFunction) continue;
        const ElfW(Sym)& symbol = image.symbols[ELF64_R_SYM(table[i].r_info)];
        const std::string name = image.names + symbol.st_name;
        const auto theirs_of = p.theirs.find(name);
        if (theirs_of == p.theirs.end()) continue;
        const uintptr_t at = image.base + table[i].r_offset;
        const uintptr_t now = *reinterpret_cast<const uintptr_t*>(at),
                        addend = type == kAbsolute ? table[i].r_addend : 0;
        // One that is not bound yet leads into its own image; where it will lead, its name says.
        const bool unbound = type == kFunction && symbol.st_shndx == SHN_UNDEF && image.holds(now);
        if (!unbound && now != p.old->base + theirs_of->second->st_value + addend) continue;
        const auto ours_of = p.ours.find(name);
        if (ours_of != p.ours.end()) {
          p.pointers.push_back({&image, at, p.own->base + ours_of->second->st_value + addend});
          ++p.result.pointers[image.path];
        } else if (of_backend(name)) {
          refused += "\n  " + image.path + ": " + name;
        }
      }
    }
  }
  if (!refused.empty())
    throw std::runtime_error("loaded images use what this copy of the backend does not have:" + refused);
  for (const auto& [name, symbol] : p.theirs) {
    if (p.ours.count(name)) {
      ++p.result.symbols;
    } else if (of_backend(name)) {
      p.result.gone.push_back(name);
    }
    p.first = std::min(p.first, reinterpret_cast<uintptr_t>(symbol));
    p.last = std::max(p.last, reinterpret_cast<uintptr_t>(symbol + 1));
  }
  if (p.theirs.empty()) throw std::runtime_error(stock + " exports nothing");
  // Whether all of it can be made writable shows here.
  for (const auto& pointer : p.pointers) const Writable writable(*pointer.image, pointer.at, sizeof pointer.value);
  const Writable writable(*p.old, p.first, p.last - p.first);
}

Rebinding::~Rebinding() = default;

Rebound Rebinding::result() const { return plan_->result; }

void Rebinding::apply() const {
  const Plan& p = *plan_;
  for (const auto& pointer : p.pointers) {
    const Writable writable(*pointer.image, pointer.at, sizeof pointer.value);
    *reinterpret_cast<uintptr_t*>(pointer.at) = pointer.value;
  }
  const Writable writable(*p.old, p.first, p.last - p.first);
  for (const auto& [name, symbol] : p.theirs) {
    const auto ours_of = p.ours.find(name);
    if (ours_of != p.ours.end()) {
      symbol->st_value = p.own->base + ours_of->second->st_value - p.old->base;
    } else if (of_backend(name)) {
      symbol->st_shndx = SHN_UNDEF;  // with the value 0 it is found for no relocation
      symbol->st_value = 0;
    }
  }
}

void Rebinding::run_initializers() const {
  const Image& own = *plan_->own;
  const auto* first = reinterpret_cast<void (*const*)()>(own.initializers);
  for (size_t i = 0; i < own.initializers_size / sizeof *first; ++i) first[i]();
}

std::vector<std::string> Rebinding::left() const {
  const auto all = images();
  const Image& old = *plan_->old;
  const auto name = [](uintptr_t address) -> std::string {
    Dl_info info{};
    return dladdr(reinterpret_cast<void*>(address), &info) && info.dli_sname ? info.dli_sname : "?";
  };
  std::vector<std::string> found;
  for (const auto& image : all) {
    if (image.base == old.base) continue;
    for (const auto& segment : image.segments) {
      if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W)) continue;
      const uintptr_t start = (image.base + segment.p_vaddr + 7) & ~uintptr_t{7};
      for (uintptr_t at = start; at + 8 <= image.base + segment.p_vaddr + segment.p_memsz; at += 8) {
        const uintptr_t value = *reinterpret_cast<const uintptr_t*>(at);
        if (!old.holds(value)) continue;
        const std::string to = name(value);
        if (to.rfind("mpsforge_", 0) != 0) found.push_back(image.path + ": " + name(at) + " -> " + to);
      }
    }
  }
  return found;
}

}  // namespace mpsforge::overlay
