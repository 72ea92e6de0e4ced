#include "source_library.h"

#include <dlfcn.h>

#include "../engine.h"

namespace mpsforge::objc {
namespace {

// Beside this library in a host build (fork/hostbuild/host/msl.go).
std::string toolchain_file() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&toolchain_file), &info)) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.find_last_of('/') + 1) + "msl/toolchain";
}

}  // namespace

Translated source_library(const std::string& source, const msl::Macros& macros, std::string& error) {
  EngineCall guard;
  msl::Toolchain toolchain;
  error = toolchain.read(toolchain_file());
  if (!error.empty()) {
    error = "mpsforge has no compiler for it: " + error;
    return {};
  }
  const msl::Compiled compiled = msl::compile(toolchain, source, macros);
  error = compiled.error;
  if (!error.empty()) return {};
  // Never closed: its kernels may be in use until the process ends.
  void* loaded = dlopen(compiled.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    error = dlerror();
    return {};
  }
  const auto table = reinterpret_cast<decltype(&mpsforge_shaders)>(dlsym(loaded, "mpsforge_shaders"));
  const auto run = reinterpret_cast<decltype(&mpsforge_shaders_run)>(dlsym(loaded, "mpsforge_shaders_run"));
  return {&table()->libraries[0], run};
}

}  // namespace mpsforge::objc
