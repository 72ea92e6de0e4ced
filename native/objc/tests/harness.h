// Runs scenarios, each in a process of its own: many of them are to end it.
#ifndef MPSFORGE_NATIVE_OBJC_TESTS_HARNESS_H
#define MPSFORGE_NATIVE_OBJC_TESTS_HARNESS_H

#include <vector>

namespace mpsforge::objc::test {

struct Case {
  const char* name;
  void (*run)();
  const char* message = nullptr;  // NULL: it must end well and print nothing; else it must die and print this
  enum Kind { kAlways, kThreadSanitizer, kPlain } kind = kAlways;
  const char* environment = nullptr;  // NAME=VALUE for this one
};

// All of them, or those named on the command line. The result is main's.
int run_cases(const std::vector<Case>& cases, int argc, char** argv);

void check(bool holds, const char* expression, const char* file, int line);

}  // namespace mpsforge::objc::test

#define CHECK(...) mpsforge::objc::test::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

#endif
