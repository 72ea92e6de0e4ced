// Rule 25: what the pool is in a forked child.
#pragma once

namespace mpsforge::pool {

// From now on a forked child of this process is known as one. May be called again.
void watch_forks();

// Whether the process was forked from one that had called watch_forks. Takes no lock: whatever lock the parent had when
// it forked stays held in the child, so a child must not come near any.
bool in_forked_child();

constexpr const char* forked_child_text =
    "Cannot use MPS in a forked subprocess. To use MPS with multiprocessing, use the 'spawn' start method";

}  // namespace mpsforge::pool
