// Libraries of shaders that are source when the process has them: compiled as C++ (native/msl), and run as translated
// ones.
#pragma once

#include <string>

#include "../../msl/compile.h"
#include "translated.h"

namespace mpsforge::objc {

// Without a library if it cannot be compiled; then error says why, with the source's lines.
Translated source_library(const std::string& source, const msl::Macros& macros, std::string& error);

}  // namespace mpsforge::objc
