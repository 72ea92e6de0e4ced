// Puts the scheduler's types in the place of the standard ones for whatever is included after this file. All standard
// headers that the code under test includes must have been included before, or the macros would reach into them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler.h"

#define atomic mpsforge_atomic
#define mutex mpsforge_mutex
#define condition_variable mpsforge_condition_variable
