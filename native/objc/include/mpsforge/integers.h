// On macOS int64_t is long long, on 64-bit Linux it is long. PyTorch's sources for macOS write std::max(n, 0LL) where n
// is an int64_t, and give a std::vector<long long> where an array of int64_t is wanted. So that they compile as they
// are, every source sees this header first.
#pragma once

#ifdef __cplusplus
#include <algorithm>
#include <vector>

namespace std {

constexpr long max(long one, long long other) { return one < other ? static_cast<long>(other) : one; }
constexpr long max(long long one, long other) { return max(other, one); }
constexpr long min(long one, long long other) { return other < one ? static_cast<long>(other) : one; }
constexpr long min(long long one, long other) { return min(other, one); }

// The same numbers: both types have 64 bits. The standard reserves such a specialisation for types of one's own; it is
// sound as long as nobody has used the vector before, which is why this comes first.
template <>
class vector<long long> : public vector<long> {
  using vector<long>::vector;
};

}  // namespace std
#endif
