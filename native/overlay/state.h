// What attaching did, for the status.
#pragma once

#include <memory>
#include <string>

#include "rebind.h"

namespace mpsforge::overlay {

struct State {
  std::string stock;  // path of torch's copy
  std::unique_ptr<const Rebinding> rebinding;
};

State& state();

// What an object with virtual functions begins with.
const void* vtable_of(const void* object);

}  // namespace mpsforge::overlay
