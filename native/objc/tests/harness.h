// Runs scenarios, each in a process of its own: many of them are to end it.
#pragma once

namespace mpsforge::objc::test {

struct Case {
  const char* name;
  void (*run)();
  const char* message = nullptr;      // NULL: it must end well and print nothing; else it must die and print this
  const char* environment = nullptr;  // NAME=VALUE for this one
  enum Kind { kAlways, kThreadSanitizer, kPlain } kind = kAlways;
};

// Called before main begins, so that a program has the cases of all files that it is made of. Always true.
bool add(const Case& one);

// All of them, or those named on the command line. The result is main's.
int run_cases(int argc, char** argv);

void check(bool holds, const char* expression, const char* file, int line);

}  // namespace mpsforge::objc::test

#define CHECK(...) mpsforge::objc::test::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// CASE(name) { ... } is a function that must end well, and its registration; DIES(name, message) { ... } one that must
// die. The environment and the kind may follow. ALSO(name, function, message, ...) is one more case of a function.
#define ALSO(name, ...) \
  [[maybe_unused]] static const bool name##_added = mpsforge::objc::test::add({#name, __VA_ARGS__})
#define DIES(name, ...)          \
  static void name();            \
  ALSO(name, name, __VA_ARGS__); \
  static void name()
#define CASE(name, ...) DIES(name, nullptr, __VA_ARGS__)
