// Host versions of the Metal kernels that the compiled operations dispatch. Argument positions and names are those of
// PyTorch's shaders.
#include "kernels.h"

#include <cmath>
#include <string>

namespace mpsforge::hostmps {
namespace {

// The word behind the text in the library's source.
std::string word_after(const KernelCall& call, const std::string& text) {
  size_t start = call.source().find(text);
  if (start == std::string::npos) call.fail("its source does not have the text \"" + text + "\"");
  start += text.size();
  const size_t end = call.source().find_first_of(" *&;", start);
  return call.source().substr(start, end - start);
}

template <class T>
T conjugate(const T& value) {
  return value;
}
template <class T>
c10::complex<T> conjugate(const c10::complex<T>& value) {
  return c10::complex<T>(value.real(), static_cast<T>(-value.imag()));
}

// gather_kernel_1 to 4 and n: a strided view to contiguous memory; scatter_kernel_*: the other way. Each element is
// declared by itself, since what lies between the view's elements is another's.
void move_strided(const KernelCall& call) {
  const bool scatter = call.function().rfind("scatter", 0) == 0;
  const char last = call.function().back();
  const size_t dimensions = last == 'n' ? static_cast<size_t>(call.value<int32_t>(5)) : static_cast<size_t>(last - '0');
  const auto sizes = call.values<uint32_t>(2, dimensions), strides = call.values<uint32_t>(3, dimensions);
  const uint32_t count = call.value<uint32_t>(4);
  const bool conjugated = call.source_has("-x.y");
  with_type(call, word_after(call, "src = (constant "), [&](auto from) {
    with_type(call, word_after(call, "dst = (device "), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      for (uint32_t i = 0; i < count; ++i) {
        size_t offset = 0, rest = i;
        for (size_t dimension = dimensions; dimension-- > 0;) {
          offset += static_cast<size_t>(strides[dimension]) * (rest % sizes[dimension]);
          rest /= sizes[dimension];
        }
        const From value = *call.read<From>(0, 1, scatter ? i : offset);
        *call.write<To>(1, 1, scatter ? offset : i) = Convert<To, From>::value(conjugated ? conjugate(value) : value);
      }
    });
  });
}

// exp_kernel, tanh_kernel: types are written into the source.
template <class Function>
void pointwise(const KernelCall& call, Function function) {
  const std::string start = "kernel void " + call.function() + "( device ";
  const std::string output = word_after(call, start);
  const size_t place = call.source().find(start);
  const size_t input_place = call.source().find("device ", place + start.size());
  const size_t end = call.source().find_first_of(" *", input_place + 7);
  const std::string input = call.source().substr(input_place + 7, end - input_place - 7);
  with_type(call, output, [&](auto to) {
    with_type(call, input, [&](auto from) {
      using To = decltype(to);
      using From = decltype(from);
      const size_t count = call.threads();
      const From* in = call.read<From>(1, count);
      To* out = call.write<To>(0, count);
      for (size_t i = 0; i < count; ++i)
        out[i] = Convert<To, float>::value(function(Convert<float, From>::value(in[i])));
    });
  });
}

void exp_kernel(const KernelCall& call) {
  pointwise(call, [](float x) { return std::exp(x); });
}

void tanh_kernel(const KernelCall& call) {
  pointwise(call, [](float x) { return std::tanh(x); });
}

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

// matmul_* of later versions than 2.6: strides of the three matrices in elements, then rows, inner and
// columns.
void matmul(const KernelCall& call) {
  with_type(call, call.function().substr(call.function().find("matmul_") + 7), [&](auto type) {
    using T = decltype(type);
    const auto strides = call.values<uint64_t>(3, 6);
    const auto sizes = call.values<uint32_t>(4, 3);
    for (size_t row = 0; row < sizes[0]; ++row) {
      for (size_t column = 0; column < sizes[2]; ++column) {
        T sum = T(0);
        for (size_t k = 0; k < sizes[1]; ++k) {
          sum = sum + *call.read<T>(0, 1, row * strides[0] + k * strides[1]) *
                          *call.read<T>(1, 1, k * strides[2] + column * strides[3]);
        }
        *call.write<T>(2, 1, row * strides[4] + column * strides[5]) = sum;
      }
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
    {"gather_kernel_*", move_strided},
    {"scatter_kernel_*", move_strided},
    {"exp_kernel", exp_kernel},
    {"tanh_kernel", tanh_kernel},
    {"renorm_float", renorm},
    {"renorm_half", renorm},
    {"renorm_bfloat", renorm},
    {"matmul_*", matmul},
    {"layer_norm_single_row_float", layer_norm},
    {"layer_norm_single_row_half", layer_norm},
    {"layer_norm_single_row_bfloat", layer_norm},
    {"layer_norm_looped_float", layer_norm},
    {"layer_norm_looped_half", layer_norm},
    {"layer_norm_looped_bfloat", layer_norm},
};

}  // namespace
}  // namespace mpsforge::hostmps
