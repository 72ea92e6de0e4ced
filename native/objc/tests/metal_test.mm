// Runs the scenarios of the Metal classes, each in a process of its own. Usage: metal_test [SCENARIO ...]
#include "harness.h"

int main(int argc, char** argv) { return mpsforge::objc::test::run_cases(argc, argv); }
