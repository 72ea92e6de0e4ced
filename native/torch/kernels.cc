// Host versions of the Metal kernels that the compiled operations dispatch. Argument positions and names are those of
// PyTorch's shaders.
#include "kernels.h"

#include <cmath>
#include <string>

namespace mpsforge::hostmps {
namespace {

std::string suffix(const KernelCall& call, const std::string& prefix) { return call.function().substr(prefix.size()); }

void renorm(const KernelCall& call) {
  with_type(call, suffix(call, "renorm_"), [&](auto type) {
    using T = decltype(type);
    const size_t count = call.threads();
    const T* norms = call.read<T>(0, count);
    T* factors = call.write<T>(1, count);
    const float most = call.value<float>(2);
    for (size_t i = 0; i < count; ++i) {
      const float norm = Convert<float, T>::value(norms[i]);
      factors[i] = Convert<T, float>::value(norm > most ? most / (norm + 1e-7f) : 1.0f);
    }
  });
}

// The rows of layer_norm_single_row_* and layer_norm_looped_*, one to a threadgroup; also their means and reciprocal
// deviations.
void layer_norm(const KernelCall& call) {
  with_type(call, call.function().substr(call.function().find_last_of('_') + 1), [&](auto type) {
    using T = decltype(type);
    const size_t rows = call.threads(0) / call.group(0), length = static_cast<size_t>(call.value<int32_t>(4));
    const T* input = call.read<T>(0, rows * length);
    T* output = call.write<T>(1, rows * length);
    T* means = call.write<T>(2, rows);
    T* scales = call.write<T>(3, rows);
    const T* weight = call.value<int32_t>(6) ? call.read<T>(8, length) : nullptr;
    const T* bias = call.value<int32_t>(7) ? call.read<T>(9, length) : nullptr;
    for (size_t row = 0; row < rows; ++row, input += length, output += length) {
      float sum = 0, squares = 0;
      for (size_t i = 0; i < length; ++i) sum += Convert<float, T>::value(input[i]);
      const float mean = sum / static_cast<float>(length);
      for (size_t i = 0; i < length; ++i) {
        squares += (Convert<float, T>::value(input[i]) - mean) * (Convert<float, T>::value(input[i]) - mean);
      }
      const float scale = 1 / std::sqrt(squares / static_cast<float>(length) + call.value<float>(5));
      for (size_t i = 0; i < length; ++i) {
        const float normal = (Convert<float, T>::value(input[i]) - mean) * scale;
        output[i] = Convert<T, float>::value(normal * (weight ? Convert<float, T>::value(weight[i]) : 1.0f) +
                                             (bias ? Convert<float, T>::value(bias[i]) : 0.0f));
      }
      means[row] = Convert<T, float>::value(mean);
      scales[row] = Convert<T, float>::value(scale);
    }
  });
}

const RegisterHostKernel registered[] = {
    {"renorm_float", renorm},
    {"renorm_half", renorm},
    {"renorm_bfloat", renorm},
    {"layer_norm_single_row_float", layer_norm},
    {"layer_norm_single_row_half", layer_norm},
    {"layer_norm_single_row_bfloat", layer_norm},
    {"layer_norm_looped_float", layer_norm},
    {"layer_norm_looped_half", layer_norm},
    {"layer_norm_looped_bfloat", layer_norm},
};

}  // namespace
}  // namespace mpsforge::hostmps
