// Compiles a shader's source into a shared library with a table of kernels (native/shaders/run.h), as
// fork/hostbuild/shaders makes one of PyTorch's own. The compiler is a child process with limits on time and memory;
// its result is kept, by content.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace mpsforge::msl {

// What compiles, as the file says that whoever built this library has written (fork/hostbuild/host/msl.go): a line each
// of a name and a value.
struct Toolchain {
  std::string clang, linker;
  std::string headers;               // folder
  std::string cache;                 // folder
  std::string identity;              // of all that the result depends on besides the source
  std::vector<std::string> flags;    // of this processor
  std::vector<std::string> objects;  // linked into each library

  // Empty: read. Otherwise why not.
  std::string read(const std::string& file);
};

struct Compiled {
  std::string library;  // its path
  std::string error;    // with the source's lines; empty: there is a library
};

// Macros are names and values.
using Macros = std::vector<std::pair<std::string, std::string>>;
Compiled compile(const Toolchain& toolchain, const std::string& source, const Macros& macros);

}  // namespace mpsforge::msl
