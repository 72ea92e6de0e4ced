// On macOS int64_t is long long, on 64-bit Linux it is long. PyTorch's sources for macOS write std::max(n, 0LL) where n
// is an int64_t, which has no meaning on Linux. So that they compile as they are, these overloads give it one.
#ifndef MPSFORGE_INTEGERS_H
#define MPSFORGE_INTEGERS_H

#ifdef __cplusplus
#include <algorithm>

namespace std {

constexpr long max(long one, long long other) { return one < other ? static_cast<long>(other) : one; }
constexpr long max(long long one, long other) { return max(other, one); }
constexpr long min(long one, long long other) { return other < one ? static_cast<long>(other) : one; }
constexpr long min(long long one, long other) { return min(other, one); }

}  // namespace std
#endif

#endif
