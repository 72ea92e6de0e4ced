// Symbol pointers of the images in this process: rebind_elf.cc on Linux, macho/dyld.cc on macOS.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mpsforge::overlay {

struct Rebound {
  std::map<std::string, size_t> pointers;  // that lead to this copy, by image
  size_t symbols = 0;                      // of the old copy that lead to this one
  std::vector<std::string> gone;  // its symbols that this copy does not have: who asks for one is refused by the loader
};

// Leads all images to this copy instead of the one in the image of a path.
class Rebinding {
 public:
  // Finds what is to be changed and changes nothing. Throws std::runtime_error if a loaded image uses what this copy
  // does not have.
  explicit Rebinding(const std::string& stock);
  ~Rebinding();
  // Runs this library's initializers, which register this copy: the loader does not run them
  // (fork/hostbuild/host/overlay.go).
  void run_initializers() const;
  // Changes what was found, and on macOS from then on each image that is loaded: the object stays until the process
  // ends.
  void apply() const;
  Rebound result() const;
  // Pointers into torch's copy in the data of the other images, as "image: symbol -> symbol".
  std::vector<std::string> left() const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

// The path of the image that an address is in, or "" if it is in none.
std::string image_of(const void* address);

}  // namespace mpsforge::overlay
