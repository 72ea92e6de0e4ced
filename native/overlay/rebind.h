// Symbol pointers of the images in this process. An ELF process has rebind_elf.cc.
#ifndef MPSFORGE_OVERLAY_REBIND_H
#define MPSFORGE_OVERLAY_REBIND_H

#include <map>
#include <string>
#include <vector>

namespace mpsforge::overlay {

struct Rebound {
  std::map<std::string, size_t> pointers;  // that were changed, by image
  size_t symbols = 0;                      // of the old copy that lead to this one now
  std::vector<std::string> gone;  // its symbols that this copy does not have: who asks for one is refused by the loader
};

// Leads all images to this copy instead of the one in the image of that path. Throws std::runtime_error and has changed
// nothing if a loaded image uses what this copy does not have.
Rebound rebind(const std::string& stock);

// Pointers into the image of that path in the data of the other images, as "image: symbol -> symbol".
std::vector<std::string> pointers_into(const std::string& stock);

// The path of the image that an address is in, or "" if it is in none.
std::string image_of(const void* address);

}  // namespace mpsforge::overlay

#endif
