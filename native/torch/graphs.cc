// Loading the library gives MPSGraph the evaluator over libtorch's CPU operators.
#include "evaluator.h"
#include "objc/graph/evaluator_hook.h"

namespace {

const bool installed = [] {
  mpsforge::graph::set_evaluator(&mpsforge::hostmps::aten_evaluator());
  return true;
}();

}  // namespace
