// Rules for the results of operations: who computes an operation names its rule.
#pragma once

#include <string>

#include "graph.h"

namespace mpsforge::graph {

[[noreturn]] void reject(const Node& node, const std::string& why);  // throws, naming the operation
std::string describe(const Value& value);
bool fixed(const Value& value);  // all lengths are known
void require_same_type(const Node& node, size_t first, size_t second);

// They throw what is wrong with the inputs, naming the operation.
namespace rules {
Rule same, binary, comparison, logical, truth, real_part, complex, select, clamp, reduce, reduce_sum, reduce_index,
    cast, constant, reshape, transpose, permute, slice, concat, split, tile, flatten, broadcast_to, expand, squeeze,
    coordinate, integers_of_unknown_shape, unknown_shape, shape_of, matrix_multiplication, array_matrix_multiplication,
    decomposition, matrix_solution, attention, gather_along, gather, one_hot, scatter_new, scatter_into, index_like,
    gradient_of_second, normalization, gamma_gradient, random, to_complex, to_real, top;

// Of convolutions, padding, resizing, sampling and recurrent layers.
Rule with_given_shape, convolution, pooling, pooling_indices, pad, resize, resize_gradient, sample, lstm,
    lstm_gradients;
}  // namespace rules

}  // namespace mpsforge::graph
