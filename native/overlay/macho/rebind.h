// Leads the images of a process to this copy of the backend: those that are there, and each that comes. What is asked
// of the process is behind an interface, so that all but dyld's functions (dyld.cc) is tried on Linux.
#pragma once

#include <mutex>
#include <unordered_map>

#include "../rebind.h"
#include "image.h"

namespace mpsforge::overlay {

class MachoRebinding {
 public:
  // Reads torch's copy and this one. Throws std::runtime_error if torch's is another than the file at its path, which
  // has been compared with the stamp.
  MachoRebinding(const Process& process, const LoadedImage& old, const LoadedImage& own);

  // Finds what is to be changed in all images and changes nothing. Throws if one cannot be led to this copy.
  void check() const;
  // Changes one image; a second time it finds nothing to change. If it throws it has changed nothing.
  void lead(const LoadedImage& image);

  Rebound result() const;
  // Pointers to functions and objects of torch's copy in the data of other images.
  std::vector<std::string> left() const;
  void run_initializers() const;

 private:
  struct Write {
    uintptr_t at, value;
  };
  std::vector<Write> plan(const LoadedImage& image) const;
  void write(const std::vector<Write>& all, bool only_try) const;

  const Process& process_;
  const LoadedImage old_;
  std::vector<uintptr_t> initializers_;
  struct Symbol {
    uintptr_t theirs = 0, ours = 0;  // ours is 0 if this copy does not have it
  };
  std::unordered_map<std::string, Symbol> symbols_;            // that torch's copy exports
  std::unordered_map<uintptr_t, std::string> of_old_backend_;  // by address, local ones included
  mutable std::mutex mutex_;
  Rebound result_;
};

}  // namespace mpsforge::overlay
