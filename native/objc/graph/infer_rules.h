// What the files of inference rules share.
#ifndef MPSFORGE_NATIVE_OBJC_GRAPH_INFER_RULES_H
#define MPSFORGE_NATIVE_OBJC_GRAPH_INFER_RULES_H

#include <string>
#include <utility>
#include <vector>

#include "graph.h"

namespace mpsforge::graph {

using Values = std::vector<Value>;
// A node's results; the count is that of results the caller asked for.
using Rule = Values (*)(const Node& node, size_t count);

[[noreturn]] void reject(const Node& node, const std::string& why);  // throws, naming the operation
std::string describe(const Value& value);
bool fixed(const Value& value);  // all lengths are known
void require_same_type(const Node& node, size_t first, size_t second);

// The rules of convolutions, padding, resizing, sampling and recurrent layers.
std::vector<std::pair<const char*, Rule>> layer_rules();

}  // namespace mpsforge::graph

#endif
