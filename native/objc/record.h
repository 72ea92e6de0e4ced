// What the process does with Metal, a line for each call, so that two builds can be compared call by call. Only with
// MPSFORGE_METAL_RECORD=1; mpsforge/host.h says what the lines are and how to get them.
#pragma once

#include <cstddef>
#include <string>

#include "../metal/metal.h"

namespace mpsforge::objc {

// The engine's functions, each of which writes its line first.
const mpsforge_metal_api& recording_api();

// Adds a line about what the engine does not see: memory, libraries, functions, pipelines, and what a graph computes.
// Does nothing unless calls are recorded. Inside or outside of the engine.
void record(const std::string& line);

std::string recorded();

}  // namespace mpsforge::objc
