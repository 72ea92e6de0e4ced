// macOS: what rebind.h asks of a process, by dyld's functions. dyld calls for each image that it loads, once it has
// bound it and before anything of it runs. Not run on a Mac.
#include <dlfcn.h>
#include <mach-o/dyld.h>
#include <mach/mach.h>

#include <cstdio>
#include <cstdlib>

#include "rebind.h"

namespace mpsforge::overlay {
namespace {

// VM_PROT_* are PROT_* (<mach/vm_prot.h>, <sys/mman.h>).
class Dyld : public Process {
 public:
  std::vector<LoadedImage> images() const override {
    std::vector<LoadedImage> all;
    for (uint32_t i = 0; i < _dyld_image_count(); ++i) {
      const auto* header = _dyld_get_image_header(i);  // null if another thread unloads images
      const char* path = _dyld_get_image_name(i);
      if (header && path) all.push_back({reinterpret_cast<uintptr_t>(header), path});
    }
    return all;
  }
  Region region(uintptr_t address) const override {
    vm_address_t start = address;
    vm_size_t size = 0;
    vm_region_basic_info_data_64_t info;
    mach_msg_type_number_t count = VM_REGION_BASIC_INFO_COUNT_64;
    mach_port_t object = MACH_PORT_NULL;
    if (vm_region_64(mach_task_self(), &start, &size, VM_REGION_BASIC_INFO_64,
                     reinterpret_cast<vm_region_info_t>(&info), &count, &object) != KERN_SUCCESS ||
        start > address) {  // it gives the next one if none is there
      return {};
    }
    return {start, start + size, info.protection};
  }
  void protect(uintptr_t start, size_t size, int protection) const override {
    // A copy, because the pages are a file's.
    const vm_prot_t how = protection & VM_PROT_WRITE ? protection | VM_PROT_COPY : protection;
    const kern_return_t result = vm_protect(mach_task_self(), start, size, false, how);
    if (result != KERN_SUCCESS) {
      throw std::runtime_error(std::string("vm_protect of symbol pointers: ") + mach_error_string(result));
    }
  }
};

LoadedImage image_with(const void* address) {
  Dl_info info{};
  if (!dladdr(address, &info)) throw std::runtime_error("an image has no path");
  return {reinterpret_cast<uintptr_t>(info.dli_fbase), info.dli_fname};
}

MachoRebinding* leading = nullptr;

// dyld cannot be asked to refuse an image here. A process with parts of both copies would compute nonsense.
void lead(const mach_header* header, intptr_t) {
  try {
    leading->lead(image_with(header));
  } catch (const std::exception& error) {
    std::fprintf(
        stderr,
        "mpsforge_overlay: %s\nThe process ends, since this image would use torch's own copy of the MPS backend "
        "beside the overlay. MPSFORGE_OVERLAY=0 leaves torch's own alone.\n",
        error.what());
    std::abort();
  }
}

}  // namespace

std::string image_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

struct Rebinding::Plan {
  Dyld process;
  MachoRebinding rebinding;
  explicit Plan(const LoadedImage& old)
      : rebinding(process, old, image_with(reinterpret_cast<const void*>(&image_of))) {}
};

Rebinding::Rebinding(const std::string& stock) {
  for (const auto& image : Dyld().images()) {
    if (image.path == stock) plan_ = std::make_unique<Plan>(image);
  }
  if (!plan_) throw std::runtime_error("no image " + stock + " in this process");
  plan_->rebinding.check();
}

Rebinding::~Rebinding() = default;
Rebound Rebinding::result() const { return plan_->rebinding.result(); }
std::vector<std::string> Rebinding::left() const { return plan_->rebinding.left(); }
void Rebinding::run_initializers() const { plan_->rebinding.run_initializers(); }

void Rebinding::apply() const {
  leading = &plan_->rebinding;
  _dyld_register_func_for_add_image(lead);  // which calls for those that are loaded already, too
}

}  // namespace mpsforge::overlay
