// No exception leaves the C interface.
#pragma once

#include <functional>
#include <string>

#include "overlay.h"

namespace mpsforge::overlay {

int attempt(const std::function<void()>& call) noexcept;

// Keeps a text for the caller until the thread's next one.
const char* keep(std::string text);

}  // namespace mpsforge::overlay
