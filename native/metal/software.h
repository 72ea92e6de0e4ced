// The two tables that mpsforge_metal_software chooses from.
#pragma once

#include "metal.h"

namespace mpsforge::metal {

const mpsforge_metal_api& untraced();
// NULL unless calls are traced.
const mpsforge_metal_api* traced();

}  // namespace mpsforge::metal
