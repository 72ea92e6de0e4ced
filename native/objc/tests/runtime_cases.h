#ifndef MPSFORGE_NATIVE_OBJC_TESTS_RUNTIME_CASES_H
#define MPSFORGE_NATIVE_OBJC_TESTS_RUNTIME_CASES_H

#include "harness.h"

namespace mpsforge::objc::test {

std::vector<Case> object_cases();
std::vector<Case> exception_cases();
std::vector<Case> foundation_cases();
std::vector<Case> dispatch_cases();
std::vector<Case> order_cases();

}  // namespace mpsforge::objc::test

#endif
