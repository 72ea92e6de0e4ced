// Who computes recorded graphs. native/torch installs one over libtorch's operators on the CPU; without one, every
// graph operation raises an error.
#pragma once

#include <string>
#include <vector>

#include "graph.h"

namespace mpsforge::graph {

// Memory as a graph sees it; strides in elements.
struct View {
  void* data = nullptr;  // nullptr if it has no element
  DataType type = DataType::Invalid;
  Shape shape;
  Shape strides;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // For the results of an operation; nullptr if it cannot compute it.
  virtual Rule* rule(const std::string& operation) const = 0;
  // Computes the targets from the feeds and writes them. Called by several threads at once. Throws std::exception with
  // the operation's name for whatever it can't do right; then the process ends with that message.
  virtual void run(const Plan& plan, const std::vector<View>& feeds, const std::vector<View>& results) const = 0;
};

// Installs it for ever; the evaluator must outlive the process's last graph. Before the first graph is made.
void set_evaluator(const Evaluator* evaluator);
const Evaluator* evaluator();  // nullptr if there is none

}  // namespace mpsforge::graph
