// What the evaluator's tests share: random tensors, and cases that are counted.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../evaluator.h"

namespace mpsforge::hostmps::tests {

using namespace graph;

extern int cases, failures;
extern std::mt19937_64 generator;
extern const std::vector<std::pair<DataType, at::ScalarType>> kTypes;

int64_t pick(int64_t low, int64_t high);  // both can come
void fail(const std::string& name, const std::string& why);

View view_of(const at::Tensor& tensor);  // lives as long as the tensor

// A tensor that is often a view with other strides than packed ones.
at::Tensor random_tensor(std::vector<int64_t> shape, at::ScalarType type);

// Runs one node. Results are written to views of larger tensors, whose other elements must stay. Expected are the
// results' shapes and types alone. Throws what the evaluator throws.
std::vector<at::Tensor> evaluate(const std::string& operation, const std::vector<at::Tensor>& inputs,
                                 Attributes attributes, const std::vector<at::Tensor>& expected);
// One case each: the results are as expected, or the error contains the text.
void expect(const std::string& name, const std::string& operation, const std::vector<at::Tensor>& inputs,
            Attributes attributes, const std::vector<at::Tensor>& expected);
void expect_error(const std::string& name, const std::string& text, const std::function<void()>& function);

// Of NCHW, without dilation; the padding is that before and behind the rows, then that of the columns.
Attributes pooling(std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> padding,
                   int64_t ceil = 0, int64_t include_padding = 0);

// The reference of half types is computed in Float64.
at::Tensor wide(const at::Tensor& tensor);

// Resizing, sampling, recurrent layers, pooling, dropout, truth values and half types; the part that is by hand, and
// the random one.
void layers_by_hand();
void random_layers();

}  // namespace mpsforge::hostmps::tests
